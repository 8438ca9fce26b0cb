"""Sets of matrices that are known by their singular values or eigenvalues."""

from condgrad.domains.spectral import (
    elliptope,
    fantope,
    hermitian_nuclear_ball,
    ky_fan_ball,
    nuclear_ball,
    schatten_ball,
    spectrahedron,
    spectral_ball,
    symmetric_nuclear_ball,
    unfolding_ball,
)
from condgrad.domains.spectral.elliptope import Elliptope
from condgrad.domains.spectral.fantope import Fantope
from condgrad.domains.spectral.hermitian_nuclear_ball import HermitianNuclearBall
from condgrad.domains.spectral.ky_fan_ball import KyFanBall
from condgrad.domains.spectral.nuclear_ball import NuclearBall
from condgrad.domains.spectral.schatten_ball import SchattenBall
from condgrad.domains.spectral.spectrahedron import Spectrahedron
from condgrad.domains.spectral.spectral_ball import SpectralBall
from condgrad.domains.spectral.symmetric_nuclear_ball import SymmetricNuclearBall
from condgrad.domains.spectral.unfolding_ball import UnfoldingBall

__all__ = [
    "ENTRIES",
    "Elliptope",
    "Fantope",
    "HermitianNuclearBall",
    "KyFanBall",
    "NuclearBall",
    "SchattenBall",
    "Spectrahedron",
    "SpectralBall",
    "SymmetricNuclearBall",
    "UnfoldingBall",
]

ENTRIES = (
    nuclear_ball.ENTRY,
    spectral_ball.ENTRY,
    ky_fan_ball.ENTRY,
    spectrahedron.ENTRY,
    fantope.ENTRY,
    symmetric_nuclear_ball.ENTRY,
    hermitian_nuclear_ball.ENTRY,
    schatten_ball.ENTRY,
    unfolding_ball.ENTRY,
    elliptope.ENTRY,
)
