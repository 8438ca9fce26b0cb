"""python -m condgrad"""

import sys

from condgrad.cli import main

sys.exit(main())
