"""Lookup of committed offsets that continues in the next call."""

from collections.abc import Sequence

from kclient.common.types import TopicPartition
from kclient.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kclient.consumer.coordinator.committed_offsets import CommittedLookup


class UnfinishedLookup:
    """Keeps the lookup of a call that timed out (Kafka: PendingCommittedOffsetRequest).

    The next call for the same partitions continues it, so that repeated calls with a timeout of 0
    return the response.
    """

    def __init__(self, max_age_ms: float) -> None:
        """Initialize.

        Args:
            max_age_ms: Age after which a lookup is discarded.
        """
        self._max_age_ms = max_age_ms
        self._lookup: CommittedLookup | None = None
        self._member: ConsumerGroupMetadata | None = None
        self._began_ms = 0.0

    def begin(
        self, partitions: Sequence[TopicPartition], member: ConsumerGroupMetadata, now_ms: float
    ) -> CommittedLookup:
        """Return the lookup that was kept, or a new one if it does not apply.

        Args:
            partitions: Partitions to look up.
            member: Current membership; in another generation other members may have committed.
            now_ms: Current time.
        """
        kept = self._lookup
        is_fresh = now_ms < self._began_ms + self._max_age_ms and member == self._member
        if kept is not None and is_fresh and kept.partitions == tuple(partitions):
            return kept
        self._lookup, self._member, self._began_ms = CommittedLookup(partitions), member, now_ms
        return self._lookup

    def discard(self) -> None:
        """Discard the lookup: it is complete, or a commit changes its result."""
        self._lookup = None
