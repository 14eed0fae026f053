"""Errors that only a producer raises."""

from kclient.common.errors import (
    FatalError,
    InvalidArgumentError,
    KafkaError,
    KafkaTimeoutError,
)

__all__ = [
    "DeliveryTimeoutError",
    "ProducerFatalError",
    "UnknownPartitionError",
]


class DeliveryTimeoutError(KafkaTimeoutError):
    """A record was not acknowledged within ``delivery.timeout.ms``.

    `possibly_written` tells whether it was sent at least once, so that the broker may hold it
    although no acknowledgement came.
    """

    def __init__(self, message: str, *, possibly_written: bool = False) -> None:
        super().__init__(message)
        self.possibly_written = possibly_written


class UnknownPartitionError(InvalidArgumentError):
    """A record names a partition that the topic does not have."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(
            f"partition: got {partition}, expected 0 to {count - 1}; "
            f"topic {topic!r} has {count} partition(s)"
        )
        self.topic = topic
        self.partition = partition
        self.count = count


class ProducerFatalError(FatalError):
    """The producer stopped for good; the cause says why. Close it and create a new one."""


def possibly_written(error: KafkaError) -> KafkaError:
    """Return an error of the same kind which says that the record may be in the log."""
    if error.possibly_written:
        return error
    told = type(error)(f"{error}; the record was sent, and the broker may hold it nevertheless")
    told.possibly_written = True
    told.__cause__ = error.__cause__
    return told
