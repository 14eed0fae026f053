"""A look-up of committed positions that outlives the call that began it."""

from collections.abc import Sequence

from kclient.common.types import TopicPartition
from kclient.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kclient.consumer.coordinator.committed_offsets import CommittedLookup


class UnfinishedLookup:
    """Keeps the look-up of a call that timed out (Kafka: PendingCommittedOffsetRequest).

    The next call for the same partitions goes on with it, so that calls with a timeout of 0 get the
    response in the end.
    """

    def __init__(self, max_age_ms: float) -> None:
        """Take the limit.

        Args:
            max_age_ms: How old a look-up may be, so that its response is not out of date.
        """
        self._max_age_ms = max_age_ms
        self._lookup: CommittedLookup | None = None
        self._member: ConsumerGroupMetadata | None = None
        self._began_ms = 0.0

    def begin(
        self, partitions: Sequence[TopicPartition], member: ConsumerGroupMetadata, now_ms: float
    ) -> CommittedLookup:
        """Return the look-up that was kept, or a new one if that one is of no use.

        Args:
            partitions: What to look up.
            member: The consumer's membership; in another generation others may have committed.
            now_ms: The present time.
        """
        kept = self._lookup
        is_fresh = now_ms < self._began_ms + self._max_age_ms and member == self._member
        if kept is not None and is_fresh and kept.partitions == tuple(partitions):
            return kept
        self._lookup, self._member, self._began_ms = CommittedLookup(partitions), member, now_ms
        return self._lookup

    def discard(self) -> None:
        """Drop what is kept: it is finished, or a commit makes it out of date."""
        self._lookup = None
