"""Checks of what the application hands in; every error comes before any effect."""

import math
import re
from collections.abc import Iterable, Mapping

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import OffsetAndMetadata, TopicPartition, check_topic_name
from kclient.record import ConsumerRecord

_YEAR_S = 31_536_000.0
_MAX_OFFSET = 2**63 - 1

CommitOffsets = Mapping[TopicPartition, OffsetAndMetadata | int] | ConsumerRecord
"""Positions to commit by partition; or a record that was processed, whose position is one on."""


def check_timeout(timeout: object, *, default_ms: float) -> float:
    """Return a timeout given in seconds as milliseconds; `default_ms` for None.

    Raises:
        InvalidTypeError: It is not a number.
        InvalidArgumentError: It is negative or NaN.
    """
    if timeout is None:
        return default_ms
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise InvalidTypeError(f"timeout: got {describe(timeout)}, expected seconds >= 0 or None")
    if math.isnan(timeout) or timeout < 0:
        raise InvalidArgumentError(
            f"timeout: got {describe(timeout)}, expected seconds >= 0; 0 does not wait"
        )
    return min(float(timeout), _YEAR_S) * 1000.0


def check_max_records(max_records: object, default: int) -> int:
    """Return how many records a poll may hand out.

    Raises:
        InvalidTypeError: It is not an int.
        InvalidArgumentError: It is below 1.
    """
    if max_records is None:
        return default
    if isinstance(max_records, bool) or not isinstance(max_records, int):
        raise InvalidTypeError(f"max_records: got {describe(max_records)}, expected an int >= 1")
    if max_records < 1:
        raise InvalidArgumentError(f"max_records: got {max_records}, expected >= 1")
    return max_records


def check_partition(partition: object) -> TopicPartition:
    """Return a partition.

    Raises:
        InvalidTypeError: It is no TopicPartition, nor a pair of str and int.
        InvalidArgumentError: Topic name or number cannot exist.
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


def check_partitions(partitions: object) -> list[TopicPartition]:
    """Return partitions, each once; a single one stands for a list of one.

    Raises:
        InvalidTypeError: It is no collection of partitions.
        InvalidArgumentError: One of them cannot exist.
    """
    if isinstance(partitions, TopicPartition):
        return [check_partition(partitions)]
    if not isinstance(partitions, Iterable) or isinstance(partitions, str | bytes | Mapping):
        raise InvalidTypeError(
            f"partitions: got {describe(partitions)}, expected a list of TopicPartition"
        )
    return list(dict.fromkeys(check_partition(partition) for partition in partitions))


def check_topics(topics: object) -> list[str]:
    """Return topic names; a str is one topic.

    Raises:
        InvalidTypeError: It is no collection of str.
        InvalidArgumentError: A name is not legal.
    """
    if isinstance(topics, str):
        return [check_topic_name(topics)]
    if not isinstance(topics, Iterable) or isinstance(topics, bytes | Mapping):
        raise InvalidTypeError(f"topics: got {describe(topics)}, expected a list of topic names")
    names = list(topics)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"topics: got {describe(name)} in it, expected topic names")
    return [check_topic_name(name) for name in names]


def check_pattern(pattern: object) -> re.Pattern[str]:
    """Return a compiled pattern.

    Raises:
        InvalidTypeError: It is neither a str nor a compiled pattern of str.
        InvalidArgumentError: It is no regular expression.
    """
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        return pattern
    if not isinstance(pattern, str):
        raise InvalidTypeError(
            f"pattern: got {describe(pattern)}, expected a regular expression as str"
        )
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidArgumentError(
            f"pattern: got {describe(pattern)}, expected a regular expression; {error}"
        ) from None


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


def check_commit(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the positions that a commit was given.

    Raises:
        InvalidTypeError: It is neither a dict of offsets nor a record.
        InvalidArgumentError: An offset or a partition cannot exist.
    """
    if isinstance(offsets, ConsumerRecord):
        partition = TopicPartition(offsets.topic, offsets.partition)
        return {partition: OffsetAndMetadata(offsets.offset + 1, "", offsets.leader_epoch)}
    if not isinstance(offsets, Mapping):
        raise InvalidTypeError(
            f"offsets: got {describe(offsets)}, expected a dict of TopicPartition to "
            "OffsetAndMetadata or int, or a record"
        )
    return {
        (checked := check_partition(partition)): _check_committed(checked, offset)
        for partition, offset in offsets.items()
    }


def check_timestamps(timestamps: object) -> dict[TopicPartition, int]:
    """Return the timestamps to look up.

    Raises:
        InvalidTypeError: It is no dict of ints.
        InvalidArgumentError: A timestamp is negative.
    """
    if not isinstance(timestamps, Mapping):
        raise InvalidTypeError(
            f"timestamps: got {describe(timestamps)}, expected a dict of TopicPartition to "
            "milliseconds since the epoch"
        )
    checked: dict[TopicPartition, int] = {}
    for given, timestamp in timestamps.items():
        partition = check_partition(given)
        if isinstance(timestamp, bool) or not isinstance(timestamp, int):
            raise InvalidTypeError(
                f"timestamp of {partition}: got {describe(timestamp)}, expected milliseconds as int"
            )
        if timestamp < 0:
            raise InvalidArgumentError(f"timestamp of {partition}: got {timestamp}, expected >= 0")
        checked[partition] = timestamp
    return checked


def _check_committed(partition: TopicPartition, given: object) -> OffsetAndMetadata:
    if isinstance(given, OffsetAndMetadata):
        if not isinstance(given.metadata, str):
            raise InvalidTypeError(
                f"metadata of {partition}: got {describe(given.metadata)}, expected a str"
            )
        check_offset(partition, given.offset)
        return given
    return OffsetAndMetadata(check_offset(partition, given))
