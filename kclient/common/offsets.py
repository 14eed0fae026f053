"""Checks of partitions and of offsets to commit, which consumers and producers take."""

from collections.abc import Mapping
from typing import Any

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import OffsetAndMetadata, TopicPartition, check_topic_name

_MAX_OFFSET = 2**63 - 1


def check_partition(partition: object) -> TopicPartition:
    """Return a partition.

    Raises:
        InvalidTypeError: It is neither a TopicPartition nor a pair of str and int.
        InvalidArgumentError: The topic name or the partition number is invalid.
    """
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise InvalidTypeError(
            f"partition: got {describe(partition)}, expected TopicPartition(topic, partition)"
        )
    topic, number = partition
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidTypeError(
            f"partition: got {describe(partition)}, expected its number as an int"
        )
    if not 0 <= number < 2**31:
        raise InvalidArgumentError(f"partition: got {describe(partition)}, expected a number >= 0")
    return TopicPartition(check_topic_name(topic), number)


def check_offset(partition: TopicPartition, offset: object) -> int:
    """Return an offset.

    Raises:
        InvalidTypeError: It is not an int.
        InvalidArgumentError: It is negative or over 63 bits.
    """
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise InvalidTypeError(f"offset of {partition}: got {describe(offset)}, expected an int")
    if not 0 <= offset <= _MAX_OFFSET:
        raise InvalidArgumentError(
            f"offset of {partition}: got {offset}, expected 0 to {_MAX_OFFSET}"
        )
    return offset


def check_offsets(offsets: Mapping[Any, object]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit.

    Raises:
        InvalidTypeError: A partition, an offset or its metadata has an invalid type.
        InvalidArgumentError: An offset or a partition is invalid.
    """
    return {
        (checked := check_partition(partition)): _check_committed(checked, offset)
        for partition, offset in offsets.items()
    }


def _check_committed(partition: TopicPartition, given: object) -> OffsetAndMetadata:
    if isinstance(given, OffsetAndMetadata):
        if not isinstance(given.metadata, str):
            raise InvalidTypeError(
                f"metadata of {partition}: got {describe(given.metadata)}, expected a str"
            )
        check_offset(partition, given.offset)
        return given
    return OffsetAndMetadata(check_offset(partition, given))
