"""How much is moved, how often."""

from dataclasses import dataclass

_SMALL = 4_000
SMALL_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What the options say.

    Attributes:
        rows: how many are read or copied; half as many are written.
        size: bytes of a value.
        warm: full rounds that are not counted: the JVM compiles what it runs again and again.
        rounds: full rounds that are counted.
    """

    rows: int = 2_000_000
    size: int = 100
    partitions: int = 4
    warm: int = 3
    rounds: int = 5

    @property
    def small(self) -> int:
        """The rows of the first round, whose values are compared one by one, and of the last ones,
        which tell what a job costs that has hardly anything to do.
        """
        return min(_SMALL, self.rows // 2)

    def rows_of(self, *, from_topic: bool) -> int:
        """Returns the rows of a full run: what is made by Spark is half of what is read."""
        return self.rows if from_topic else self.rows // 2
