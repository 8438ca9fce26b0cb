"""Sets that are made from other sets."""

from condgrad.domains.entry import DomainEntry

__all__ = ["ENTRIES"]

ENTRIES: tuple[DomainEntry, ...] = ()
