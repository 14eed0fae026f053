"""Errors that stay inside the storage layer: each is answered by rebuilding what was damaged."""

from kclient.common.errors import KafkaError


class CorruptIndexError(KafkaError):
    """An index file contradicts itself or its log (Kafka: CorruptIndexException)."""


class CorruptSnapshotError(KafkaError):
    """A producer snapshot does not parse or add up (Kafka: CorruptSnapshotException)."""


class MalformedCheckpointError(KafkaError):
    """A checkpoint file does not have the expected lines."""


class CleaningAbandonedError(KafkaError):
    """A log changed or was closed while it was cleaned; what was begun does not count."""


class RecordValidationError(KafkaError):
    """Some records of a produce request were refused (Kafka: RecordValidationException, KIP-467).

    Attributes:
        cause: The error that stands for the whole partition.
        record_errors: Pairs of (index of the record in its request, what is wrong with it).
    """

    def __init__(self, cause: KafkaError, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.record_errors = record_errors
