"""The marker that a transaction of a task commits with its records: what it has written."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kclient.common.errors import KafkaError
from kclient.common.types import OffsetAndMetadata
from kclient.spark.sink.write_errors import NonDeterministicReplayError

_METADATA = re.compile(r"kclient-spark rows=(\d{1,19}) checksum=([0-9a-f]{1,16})")
_CHECKSUM_LIMIT = 2**64


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """A committed offset that records which rows of which micro-batch a task has written.

    Attributes:
        batch_id: Id of the micro-batch, which is the offset; 0 for a job that writes once.
        rows: Number of rows.
        checksum: Checksum of the rows: see `row_checksum`.
    """

    batch_id: int
    rows: int
    checksum: int

    @classmethod
    def latest(
        cls, transactional_id: str, committed: Iterable[OffsetAndMetadata]
    ) -> "CommitMarker | None":
        """Return the newest marker among the committed offsets of a group; None without one.

        Args:
            transactional_id: Name of the group, for errors.
            committed: Its offsets: one for each topic that has had a marker.

        Raises:
            KafkaError: The newest offset is not a marker: another application commits to the group.
        """
        newest = max(committed, default=None, key=lambda each: each.offset)
        if newest is None:
            return None
        found = _METADATA.fullmatch(newest.metadata)
        if found is None:
            raise KafkaError(
                f"group {transactional_id!r}: got a committed offset {newest.offset} that no sink "
                "has written, expected the marker of a transaction; another application uses the "
                "name as its group"
            )
        return cls(newest.offset, int(found[1]), int(found[2], 16))

    def committed(self) -> OffsetAndMetadata:
        """Return the offset to commit."""
        return OffsetAndMetadata(
            self.batch_id, f"kclient-spark rows={self.rows} checksum={self.checksum:x}"
        )

    def check_repeated(self, transactional_id: str, repeated: "CommitMarker") -> None:
        """Check that a repetition has the rows that were committed.

        Raises:
            NonDeterministicReplayError: It has others.
        """
        if repeated != self:
            raise NonDeterministicReplayError(
                f"transaction {transactional_id!r}, batch {self.batch_id}: got {repeated.rows} "
                f"row(s) with checksum {repeated.checksum:x}, expected {self.rows} row(s) with "
                f"checksum {self.checksum:x}, which an earlier attempt has committed; the query "
                "must return the same rows when Spark repeats it: no rand(), uuid() or "
                "current_timestamp(), partitions by key, an unchanged number of partitions; and "
                "no other sink may use the same id"
            )


def added(checksum: int, more: int) -> int:
    """Return the sum of two checksums, which fits into a marker."""
    return (checksum + more) % _CHECKSUM_LIMIT
