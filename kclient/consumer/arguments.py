"""Validation of arguments; runs before a call has any effect."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.offsets import check_offset, check_offsets, check_partition
from kclient.common.types import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
    check_topic_name,
)
from kclient.record import ConsumerRecord

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATTERN_CHARACTERS = frozenset("^$*+?|()[]{}\\")

CommitOffsets = Mapping[TopicPartition, OffsetAndMetadata | int] | ConsumerRecord
"""Offsets to commit by partition; or a processed record, which commits the offset after it."""


def check_max_records(max_records: object, default: int) -> int:
    """Return the limit of records per poll.

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


def check_each(call: str, partitions: tuple[object, ...]) -> list[TopicPartition]:
    """Return partitions that a call takes as separate arguments.

    Raises:
        InvalidTypeError: An argument is not a TopicPartition, or is a collection of them.
        InvalidArgumentError: A topic name or partition number is invalid.
    """
    for given in partitions:
        is_pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)
        if isinstance(given, Iterable) and not is_pair and not isinstance(given, str | bytes):
            raise InvalidTypeError(
                f"{call}: got {describe(given)}, expected TopicPartition(topic, partition); pass "
                f"them as separate arguments: {call}(*partitions)"
            )
    return [check_partition(partition) for partition in partitions]


def check_partitions(partitions: object) -> list[TopicPartition]:
    """Return partitions without duplicates; accepts a single partition.

    Raises:
        InvalidTypeError: It is not a collection of partitions.
        InvalidArgumentError: A topic name or partition number is invalid.
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
        InvalidTypeError: It is not a collection of str.
        InvalidArgumentError: A topic name is invalid.
    """
    if isinstance(topics, str):
        return [_check_topic(topics)]
    if not isinstance(topics, Iterable) or isinstance(topics, bytes | Mapping):
        raise InvalidTypeError(f"topics: got {describe(topics)}, expected a list of topic names")
    names = list(topics)
    for name in names:
        if not isinstance(name, str):
            raise InvalidTypeError(f"topics: got {describe(name)} in it, expected topic names")
    return [_check_topic(name) for name in names]


def _check_topic(name: str) -> str:
    try:
        return check_topic_name(name)
    except InvalidArgumentError as error:
        if not _PATTERN_CHARACTERS.intersection(name):
            raise
        raise InvalidArgumentError(
            f"{error}; a regular expression is given as subscribe(pattern={name!r:.80})"
        ) from None


def check_pattern(pattern: object) -> re.Pattern[str]:
    """Return a compiled pattern.

    Raises:
        InvalidTypeError: It is neither a str nor a compiled pattern of str.
        InvalidArgumentError: It is not a valid regular expression.
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


def check_seek(partition: TopicPartition, offset: object) -> OffsetAndMetadata:
    """Return the target of a seek.

    Raises:
        InvalidTypeError: It is not an int, OffsetAndMetadata or OffsetAndTimestamp.
        InvalidArgumentError: The offset is negative or over 63 bits.
    """
    if isinstance(offset, OffsetAndMetadata | OffsetAndTimestamp):
        checked = check_offset(partition, offset.offset)
        return OffsetAndMetadata(checked, "", offset.leader_epoch)
    if offset is None:
        raise InvalidTypeError(
            f"offset of {partition}: got None, expected an int; if offsets_for_times() finds no "
            "record, use seek_to_end()"
        )
    return OffsetAndMetadata(check_offset(partition, offset))


def check_commit(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to commit.

    Raises:
        InvalidTypeError: It is neither a dict of offsets nor a record.
        InvalidArgumentError: An offset or a partition is invalid.
    """
    if isinstance(offsets, ConsumerRecord):
        partition = TopicPartition(offsets.topic, offsets.partition)
        return {partition: OffsetAndMetadata(offsets.offset + 1, "", offsets.leader_epoch)}
    if not isinstance(offsets, Mapping):
        raise InvalidTypeError(
            f"offsets: got {describe(offsets)}, expected a dict of TopicPartition to "
            "OffsetAndMetadata or int, or a record"
        )
    return check_offsets(offsets)


def check_timestamps(timestamps: object) -> dict[TopicPartition, int]:
    """Return the timestamps to look up.

    Raises:
        InvalidTypeError: It is not a dict of ints or datetimes.
        InvalidArgumentError: A timestamp is negative.
    """
    if not isinstance(timestamps, Mapping):
        raise InvalidTypeError(
            f"timestamps: got {describe(timestamps)}, expected a dict of TopicPartition to "
            "milliseconds since the epoch or datetime"
        )
    checked: dict[TopicPartition, int] = {}
    for given, timestamp in timestamps.items():
        partition = check_partition(given)
        checked[partition] = _check_timestamp(partition, timestamp)
    return checked


def _check_timestamp(partition: TopicPartition, given: object) -> int:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            raise InvalidArgumentError(
                f"timestamp of {partition}: got {describe(given)}, expected a datetime with a time "
                "zone, such as datetime.now(UTC)"
            )
        given = (given - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidTypeError(
            f"timestamp of {partition}: got {describe(given)}, expected milliseconds since the "
            "epoch as int, or a datetime"
        )
    if given < 0:
        raise InvalidArgumentError(f"timestamp of {partition}: got {given}, expected >= 0")
    return given
