"""The metadata log on disk, in Kafka's format."""

from collections.abc import Iterator, Sequence

from kclient.broker.controller.metadata_image import CLUSTER_METADATA
from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.replication.record_reader import keyed_batch, read_records
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.protocol.message import Message
from kclient.protocol.messages.metadata_records import MetadataRecord

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)
METADATA_TOPIC_ID = bytes(15) + b"\x01"
METADATA_LOG_CONFIG = LogConfig(
    cleanup_policy=(), retention_ms=-1, retention_bytes=-1, max_message_bytes=8 * 1024 * 1024
)
"""Nothing is ever deleted from it: it is replayed from its beginning."""

_EPOCH = 1
"""There is one voter, hence one leader, which never changes."""

_VERSIONS = {"RegisterBrokerRecord": 3, "PartitionRecord": 1, "PartitionChangeRecord": 1}
"""The versions that belong to the metadata.version written; all others are 0."""


class KafkaMetadataLog:
    """Metadata records in ``__cluster_metadata-0`` (Kafka: KafkaMetadataLog)."""

    def __init__(self, clock: Clock, log: UnifiedLog) -> None:
        self._clock = clock
        self._log = log

    def replay(self) -> Iterator[tuple[int, MetadataRecord]]:
        """Yield all records with their offsets, oldest first.

        Raises:
            KafkaError: A record is damaged, or of a kind that is not known.
        """
        for record in read_records(self._log):
            if record.value is not None:
                yield record.offset, MetadataRecord.decode_framed(record.value)

    def append(self, records: Sequence[MetadataRecord]) -> int:
        """Write records in one batch, flushed; return the last one's offset.

        Raises:
            KafkaStorageError: They could not be written or flushed, and are not in the log; or the
                disk failed, and nobody can tell before a restart.
        """
        values = [(None, record.encode_framed(_version(record))) for record in records]
        batch = keyed_batch(self._clock.wall_ms(), values)
        info = self._log.append_as_leader(batch, _EPOCH, origin="coordinator")
        try:
            self._log.flush()
        except KafkaStorageError:
            # A decision that its asker was told had failed must not come true at the next start.
            self._log.truncate_to(info.first_offset)
            raise
        self._log.high_watermark = self._log.log_end_offset
        return info.last_offset


def _version(record: Message) -> int:
    return _VERSIONS.get(type(record).__name__, 0)
