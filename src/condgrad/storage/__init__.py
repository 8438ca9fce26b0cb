"""Files: written whole or not at all, read with limits; archives without pickle, and snapshots of stored objects in them."""
