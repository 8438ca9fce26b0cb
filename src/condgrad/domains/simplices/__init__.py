"""Simplices and sets like them."""

from condgrad.domains.simplices import simplex
from condgrad.domains.simplices.simplex import Simplex

__all__ = ["ENTRIES", "Simplex"]

ENTRIES = (simplex.ENTRY,)
