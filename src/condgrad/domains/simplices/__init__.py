"""Simplices and sets like them."""

from condgrad.domains.simplices import (
    capped_simplex,
    hypersimplex,
    monotone_box,
    simplex,
    simplex_product,
    unit_simplex,
)
from condgrad.domains.simplices.capped_simplex import CappedSimplex
from condgrad.domains.simplices.hypersimplex import Hypersimplex
from condgrad.domains.simplices.monotone_box import MonotoneBox
from condgrad.domains.simplices.simplex import Simplex
from condgrad.domains.simplices.simplex_product import SimplexProduct
from condgrad.domains.simplices.unit_simplex import UnitSimplex

__all__ = ["ENTRIES", "CappedSimplex", "Hypersimplex", "MonotoneBox", "Simplex", "SimplexProduct", "UnitSimplex"]

ENTRIES = (
    simplex.ENTRY,
    unit_simplex.ENTRY,
    hypersimplex.ENTRY,
    capped_simplex.ENTRY,
    simplex_product.ENTRY,
    monotone_box.ENTRY,
)
