"""Polytopes."""

from condgrad.domains.polytopes import box
from condgrad.domains.polytopes.box import Box

__all__ = ["ENTRIES", "Box"]

ENTRIES = (box.ENTRY,)
