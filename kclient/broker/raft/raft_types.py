"""Value types of the quorum: epochs with offsets, leaders, nodes and committed batches."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from kclient.broker.log.metadata_log import METADATA_LOG_CONFIG
from kclient.common.errors import KafkaError

MAX_BATCH_BYTES = METADATA_LOG_CONFIG.max_message_bytes
"""Maximum size of a batch of the metadata log (Kafka: KafkaRaftClient.MAX_BATCH_SIZE_BYTES)."""

NO_NODE = -1
"""Id of no node: no leader is known, no vote was cast."""


Item = TypeVar("Item")


class RandomNumbers(Protocol):
    """Source of random numbers, such as `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 to 1."""
        ...

    def choice(self, items: Sequence[Item], /) -> Item:
        """Return one of the items."""
        ...


class FatalRaftError(KafkaError):
    """The node must stop: its log, its quorum state or a response contradict the protocol."""


class OffsetAndEpoch(NamedTuple):
    """Offset and the epoch of the record before it; id of a snapshot (Kafka: OffsetAndEpoch)."""

    offset: int
    epoch: int

    def is_up_to_date_with(self, other: "OffsetAndEpoch") -> bool:
        """Return whether a log that ends here has at least what one that ends at `other` has."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT = OffsetAndEpoch(0, 0)
"""Snapshot that formatting writes: it has voters only, and is never sent to another node."""


class LeaderAndEpoch(NamedTuple):
    """Leader of an epoch; `NO_NODE` if it is unknown (Kafka: LeaderAndEpoch)."""

    leader_id: int
    epoch: int


NO_LEADER = LeaderAndEpoch(NO_NODE, -1)
"""State before any epoch is known."""


class RaftNode(NamedTuple):
    """Destination of a request. Bootstrap servers have negative ids, from -2 downwards."""

    id: int
    host: str
    port: int


class CommittedBatch(NamedTuple):
    """Batch of the metadata log below the high watermark, or of a snapshot (Kafka: Batch).

    Attributes:
        base_offset: Offset of the first record.
        last_offset: Offset of the last record.
        epoch: Epoch of the leader that wrote it.
        timestamp_ms: Wall time of the append, milliseconds.
        size_in_bytes: Size in the log.
        records: Values of the records; none for a batch of control records.
    """

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_in_bytes: int
    records: tuple[bytes, ...]
