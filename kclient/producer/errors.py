"""Errors that only a producer raises."""

from kclient.common.errors import FatalError, InvalidArgumentError, KafkaTimeoutError


class DeliveryTimeoutError(KafkaTimeoutError):
    """A record was not acknowledged within ``delivery.timeout.ms``.

    Attributes:
        possibly_written: Whether the record was sent at least once, so that the broker may hold it
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
    """The producer stopped for good; the cause says why. Close it and make a new one."""
