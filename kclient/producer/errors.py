"""Errors that only the producer raises."""

from copy import copy

from kclient.common.broker_errors import (
    InvalidProducerEpochError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kclient.common.errors import (
    FatalError,
    InvalidArgumentError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.common.types import TopicPartition

__all__ = [
    "DeliveryTimeoutError",
    "ProducerFatalError",
    "TransactionAbortedError",
    "UnknownPartitionError",
]


class DeliveryTimeoutError(KafkaTimeoutError):
    """A record was not acknowledged within ``delivery.timeout.ms``.

    `possibly_written` is True if the record was sent at least once: the log may hold it.
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
    """The producer stopped permanently; `__cause__` is the reason. Create a new one."""


class TransactionAbortedError(KafkaError):
    """The transaction was aborted before the record was sent (Kafka: TransactionAbortedException).

    It is the outcome of records that were queued when `Producer.abort_transaction` was called.
    """


def failed_transaction(error: KafkaError) -> TransactionAbortableError:
    """Return the error of calls after an error of the transaction, which is the cause."""
    failed = TransactionAbortableError(
        f"the transaction has failed and can only be aborted; call abort_transaction(): {error}"
    )
    failed.__cause__ = error
    return failed


def stopped_producer(error: KafkaError) -> FatalError:
    """Return the error of calls after a permanent error, which is the cause."""
    stopped: FatalError
    if isinstance(error, InvalidProducerEpochError | ProducerFencedError):
        stopped = ProducerFencedError(
            "the producer is fenced: another producer with its transactional.id was started, or "
            f"its transaction was open for longer than transaction.timeout.ms; close it: {error}"
        )
    else:
        stopped = ProducerFatalError(f"the producer stopped: {error}")
    stopped.__cause__ = error
    return stopped


def possibly_written(error: KafkaError) -> KafkaError:
    """Return an error of the same class for a record that may be in the log."""
    if error.possibly_written:
        return error
    marked = _copy(error)
    marked.args = (f"{error}; the record was sent, and the broker may hold it nevertheless",)
    marked.possibly_written = True
    return marked


def located(error: KafkaError, topic_partition: TopicPartition) -> KafkaError:
    """Return the error with the partition of the records that failed.

    An error may be that of several batches, as if a connection is lost: each gets its own.
    """
    if (error.topic, error.partition) == topic_partition:
        return error
    found = _copy(error)
    found.topic, found.partition = topic_partition
    return found


def _copy(error: KafkaError) -> KafkaError:
    other = copy(error)
    other.__cause__ = error.__cause__
    return other
