"""Ranges of message versions, in Kafka's notation: ``3+``, ``0-12``, ``4``, ``none``."""

from functools import lru_cache
from typing import NamedTuple

UNBOUNDED = 0x7FFF


class VersionRange(NamedTuple):
    """Inclusive range of versions; empty if `highest` is less than `lowest`.

    Attributes:
        lowest: First version of the range.
        highest: Last version of the range; `UNBOUNDED` for an open end.
    """

    lowest: int
    highest: int

    @classmethod
    @lru_cache(maxsize=256)  # thousands of fields, few ranges
    def parse(cls, text: str) -> "VersionRange":
        """Parse a range.

        Raises:
            ValueError: The text is no version range.
        """
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), UNBOUNDED)
        lowest, dash, highest = text.partition("-")
        return cls(int(lowest), int(highest) if dash else int(lowest))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        if self.highest < self.lowest:
            return "none"
        if self.highest == UNBOUNDED:
            return f"{self.lowest}+"
        if self.highest == self.lowest:
            return str(self.lowest)
        return f"{self.lowest}-{self.highest}"


NO_VERSIONS = VersionRange(0, -1)
