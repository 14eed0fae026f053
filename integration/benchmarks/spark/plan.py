"""The numbers of rows and rounds."""

from dataclasses import dataclass

_SMALL = 4_000
SMALL_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """Size of the benchmark.

    Attributes:
        rows: rows to read or copy; half as many are written.
        size: bytes of a value.
        warm: full warm-up rounds, in which the JVM compiles.
        rounds: full rounds that are counted.
    """

    rows: int = 2_000_000
    size: int = 100
    partitions: int = 4
    warm: int = 3
    rounds: int = 5

    @property
    def small(self) -> int:
        """Rows of the first round, whose values are compared, and of the last ones.

        The last ones measure the cost of a job with hardly any rows.
        """
        return min(_SMALL, self.rows // 2)

    def rows_of(self, *, from_topic: bool) -> int:
        """Returns the rows of a full run: all if they are read, half if Spark generates them."""
        return self.rows if from_topic else self.rows // 2
