"""Sets that are made from other sets."""

from condgrad.domains.combinators import (
    box_cut,
    cached,
    half_space_cut,
    hull_of_union,
    linear_image,
    minkowski_sum,
    product,
    scaled,
    shifted,
)
from condgrad.domains.combinators.box_cut import BoxCut
from condgrad.domains.combinators.cached import Cached, Saved
from condgrad.domains.combinators.half_space_cut import HalfSpaceCut
from condgrad.domains.combinators.hull_of_union import HullOfUnion
from condgrad.domains.combinators.linear_image import LinearImage
from condgrad.domains.combinators.minkowski_sum import MinkowskiSum
from condgrad.domains.combinators.product import Product
from condgrad.domains.combinators.scaled import Scaled
from condgrad.domains.combinators.shifted import Shifted
from condgrad.domains.entry import DomainEntry

__all__ = [
    "ENTRIES",
    "BoxCut",
    "Cached",
    "HalfSpaceCut",
    "HullOfUnion",
    "LinearImage",
    "MinkowskiSum",
    "Product",
    "Saved",
    "Scaled",
    "Shifted",
]

ENTRIES: tuple[DomainEntry, ...] = (
    product.ENTRY,
    scaled.ENTRY,
    shifted.ENTRY,
    linear_image.ENTRY,
    minkowski_sum.ENTRY,
    hull_of_union.ENTRY,
    half_space_cut.ENTRY,
    box_cut.ENTRY,
    cached.ENTRY,
)
