"""The metadata log on disk, in Kafka's format."""

from collections.abc import Callable, Iterator, Sequence

from kclient.broker.log.log_config import LogConfig
from kclient.broker.log.memory_records import keyed_batch
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.metadata_image import CLUSTER_METADATA
from kclient.broker.metadata.metadata_version import MetadataVersion
from kclient.common.broker_errors import KafkaStorageError
from kclient.common.errors import KafkaError
from kclient.common.files import FileSlice
from kclient.common.runtime import Clock
from kclient.common.types import TopicPartition
from kclient.protocol.messages.metadata_records import MetadataRecord
from kclient.record import Record, read_batches

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA, 0)
METADATA_TOPIC_ID = bytes(15) + b"\x01"
METADATA_LOG_CONFIG = LogConfig(
    cleanup_policy=(), retention_ms=-1, retention_bytes=-1, max_message_bytes=8 * 1024 * 1024
)
"""No retention: the log is replayed from its start."""

_READ_BYTES = 1 << 20
_EPOCH = 1
"""Leader epoch: with a single voter it never changes."""

WRITTEN_VERSION = MetadataVersion.IBP_4_0_IV3
"""Level of metadata.version whose records are written."""


class KafkaMetadataLog:
    """Metadata records in ``__cluster_metadata-0`` (Kafka: KafkaMetadataLog)."""

    def __init__(self, clock: Clock, log: UnifiedLog) -> None:
        self._clock = clock
        self._log = log

    def replay(self) -> Iterator[tuple[int, MetadataRecord]]:
        """Yield all records with their offsets, oldest first.

        Raises:
            KafkaError: A record is corrupt or of an unknown type.
        """
        for record in _read_records(self._log):
            if record.value is not None:
                yield record.offset, MetadataRecord.decode_framed(record.value)

    def append(
        self, records: Sequence[MetadataRecord], on_committed: Callable[[KafkaError | None], None]
    ) -> int:
        """Append records in one batch and flush; return the offset of the last one.

        With a single voter they are committed before this returns.

        Raises:
            KafkaStorageError: The append or flush failed, and the records were removed. After a
                disk failure a restart decides whether they are in the log.
        """
        values = [(None, WRITTEN_VERSION.encode(record)) for record in records]
        batch = keyed_batch(self._clock.wall_ms(), values)
        info = self._log.append_as_leader(batch, _EPOCH, origin="coordinator")
        try:
            self._log.flush()
        except KafkaStorageError:
            # A change that was reported as failed must not be replayed at the next start.
            self._log.truncate_to(info.first_offset)
            raise
        self._log.high_watermark = self._log.log_end_offset
        on_committed(None)
        return info.last_offset


def _read_records(log: UnifiedLog) -> Iterator[Record]:
    """Yield every data record of a log, oldest first, up to its current end.

    Raises:
        CorruptRecordError: A batch is corrupt.
    """
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        found = log.read(offset, _READ_BYTES, min_one_message=True, max_offset=end)
        records = found.records
        data = records.read() if isinstance(records, FileSlice) else records
        before = offset
        for batch in read_batches(data):
            offset = batch.next_offset
            if not batch.is_control:
                batch.ensure_valid()
                yield from batch.records()
        if offset == before:
            return
