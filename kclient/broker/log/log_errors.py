"""Errors of the storage layer that are handled inside the broker."""

from kclient.common.errors import KafkaError


class CorruptIndexError(KafkaError):
    """An index file is inconsistent, or does not match its log (Kafka: CorruptIndexException)."""


class CorruptSnapshotError(KafkaError):
    """A producer snapshot cannot be parsed (Kafka: CorruptSnapshotException)."""


class MalformedCheckpointError(KafkaError):
    """A checkpoint file does not have the expected lines."""


class CleaningAbandonedError(KafkaError):
    """A log changed or was closed while it was cleaned; the cleaning was aborted."""


class RecordValidationError(KafkaError):
    """Records of a produce request are invalid (Kafka: RecordValidationException, KIP-467).

    Attributes:
        cause: Error of the whole partition.
        record_errors: Pairs of (index of the record in its request, error message).
    """

    def __init__(self, cause: KafkaError, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.record_errors = record_errors
