"""Polytopes."""

from condgrad.domains.polytopes import birkhoff, box
from condgrad.domains.polytopes.birkhoff import Birkhoff
from condgrad.domains.polytopes.box import Box

__all__ = ["ENTRIES", "Birkhoff", "Box"]

ENTRIES = (box.ENTRY, birkhoff.ENTRY)
