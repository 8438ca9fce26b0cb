"""Sets of matrices that are known by their singular values or eigenvalues."""

from condgrad.domains.spectral import fantope, ky_fan_ball, nuclear_ball, spectrahedron, spectral_ball
from condgrad.domains.spectral.fantope import Fantope
from condgrad.domains.spectral.ky_fan_ball import KyFanBall
from condgrad.domains.spectral.nuclear_ball import NuclearBall
from condgrad.domains.spectral.spectrahedron import Spectrahedron
from condgrad.domains.spectral.spectral_ball import SpectralBall

__all__ = ["ENTRIES", "Fantope", "KyFanBall", "NuclearBall", "Spectrahedron", "SpectralBall"]

ENTRIES = (nuclear_ball.ENTRY, spectral_ball.ENTRY, ky_fan_ball.ENTRY, spectrahedron.ENTRY, fantope.ENTRY)
