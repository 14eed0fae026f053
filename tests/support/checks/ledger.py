"""Records that a group has processed and committed, in bounded memory."""

from collections import Counter

from tests.support.checks.audit import seal


class Ledger:
    """Checks the guarantees of a group.

    Committed records were processed; committed offsets do not decrease; and records below the
    offset committed at one look are not processed again after it.

    Attributes:
        committed: The group's committed offsets, as of the last `note_committed`.
        repeated: Number of records that were processed more than once.
        seals: For each partition the sum of its records' seals, each record counted once.
    """

    def __init__(self) -> None:
        self.committed: dict[int, int] = {}
        self.repeated = 0
        self.seals: Counter[int] = Counter()
        self._done: dict[int, int] = {}
        self._beyond: dict[int, set[int]] = {}

    def done(self, partition: int) -> int:
        """Return the offset up to which every record was processed."""
        return self._done.get(partition, 0)

    def note_read(
        self, partition: int, offset: int, value: bytes, *, may_be_late: bool = False
    ) -> bool:
        """Add a record that a member processed after the last `note_committed`.

        Args:
            partition: Its partition.
            offset: Its offset.
            value: Its value.
            may_be_late: Whether the member may not know yet that another owns its partition.

        Returns:
            Whether it is not late.
        """
        committed = self.committed.get(partition, 0)
        if offset < committed:
            assert may_be_late, f"{partition}-{offset} comes again, but {committed} is committed"
            self.repeated += 1
            return False
        beyond = self._beyond.setdefault(partition, set())
        done = self._done.get(partition, 0)
        if offset < done or offset in beyond:
            self.repeated += 1
            return True
        self.seals[partition] += seal(partition, offset, value)
        if offset > done:
            beyond.add(offset)  # the journal of the previous member is read after its own
            return True
        done += 1
        while done in beyond:
            beyond.remove(done)
            done += 1
        self._done[partition] = done
        return True

    def note_committed(self, positions: dict[int, int]) -> None:
        """Set the committed offsets, after all reads that were before them."""
        for partition, offset in positions.items():
            before, done = self.committed.get(partition, 0), self.done(partition)
            assert offset >= before, f"partition {partition}: commit back from {before} to {offset}"
            assert offset <= done, f"partition {partition}: {offset} committed, {done} processed"
            self.committed[partition] = offset
