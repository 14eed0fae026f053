"""Errors of the producer, and the mark of records that may be in the log."""

from kclient.common.broker_errors import NotLeaderOrFollowerError
from kclient.producer.errors import (
    DeliveryTimeoutError,
    ProducerFatalError,
    UnknownPartitionError,
    possibly_written,
)


def test_marked_error_keeps_class_text_and_cause() -> None:
    cause = OSError("broken pipe")
    error = NotLeaderOrFollowerError("moved")
    error.__cause__ = cause
    marked = possibly_written(error)
    assert type(marked) is NotLeaderOrFollowerError
    assert str(marked).startswith("moved; ")
    assert marked.__cause__ is cause
    assert marked.possibly_written
    assert not error.possibly_written  # shared by records that were not sent


def test_marked_error_is_not_marked_again() -> None:
    error = DeliveryTimeoutError("late", possibly_written=True)
    assert possibly_written(error) is error


def test_unknown_partition_names_the_valid_ones() -> None:
    error = UnknownPartitionError("orders", 3, 3)
    assert str(error) == "partition: got 3, expected 0 to 2; topic 'orders' has 3 partition(s)"
    assert (error.topic, error.partition, error.count) == ("orders", 3, 3)


def test_timeout_is_retriable_and_fatal_error_is_not() -> None:
    assert DeliveryTimeoutError("late").retriable
    assert not ProducerFatalError("stopped").retriable
