"""Names of files and directories of logs (Kafka: LogFileUtils)."""

import re
from pathlib import Path

from kclient.common.broker_errors import InvalidTopicError
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition, topic_name_problem
from kclient.common.uuids import RandomSource

LOG_FILE_SUFFIX = ".log"
INDEX_FILE_SUFFIX = ".index"
TIME_INDEX_FILE_SUFFIX = ".timeindex"
TXN_INDEX_FILE_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_FILE_SUFFIX = ".snapshot"
DELETED_FILE_SUFFIX = ".deleted"
CLEANED_FILE_SUFFIX = ".cleaned"
SWAP_FILE_SUFFIX = ".swap"
DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

SEGMENT_SUFFIXES = (
    LOG_FILE_SUFFIX,
    INDEX_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
)

METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)
"""Partition of the cluster metadata."""

_MAX_NAME = 255
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
_PARTITION_DIRECTORY = re.compile(r"(.+)-(\d{1,10})")
_DELETED_DIRECTORY = re.compile(r"(.+)-(\d{1,10})\.[0-9a-f]{32}-(delete|future|stray)")


def segment_file(directory: Path, base_offset: int, suffix: str) -> Path:
    """Return the path of a segment's file: its base offset in 20 digits, and a suffix."""
    return directory / f"{base_offset:020d}{suffix}"


def with_suffix_changed(path: Path, old: str, new: str) -> Path:
    """Return the path of a file whose name ends with another suffix."""
    return path.with_name(path.name.removesuffix(old) + new)


def base_offset_of(name: str) -> int | None:
    """Return the base offset in the name of a segment file, or None."""
    digits = name.partition(".")[0]
    offset = int(digits) if digits.isascii() and digits.isdigit() else None
    return None if offset is None or offset > _MAX_OFFSET else offset


def checked(partition: TopicPartition) -> TopicPartition:
    """Return the partition if its name is a valid directory name.

    Raises:
        InvalidTopicError: The topic name or the partition number is invalid.
    """
    problem = topic_name_problem(partition.topic)
    if problem is None and not 0 <= partition.partition <= _MAX_PARTITION:
        problem = f"partition {partition.partition} is not a number from 0 to {_MAX_PARTITION}"
    if problem is not None:
        raise InvalidTopicError(f"topic: got {partition.topic!r:.80}; {problem}")
    return partition


def partition_directory(data_dir: Path, partition: TopicPartition) -> Path:
    """Return the directory of a partition's log."""
    topic, number = checked(partition)
    return data_dir / f"{topic}-{number}"


def deleted_directory(
    data_dir: Path,
    partition: TopicPartition,
    rng: RandomSource,
    kind: str = DELETE_DIR_SUFFIX,
) -> Path:
    """Return a new, unique directory name for a partition that is being deleted or set aside."""
    topic, number = checked(partition)
    suffix = f"-{number}.{rng.randbytes(16).hex()}{kind}"
    return data_dir / f"{topic[: _MAX_NAME - len(suffix)]}{suffix}"


def is_deleted_directory(name: str) -> bool:
    """Return whether the name is that of a partition that is being deleted."""
    return name.endswith(DELETE_DIR_SUFFIX) and _DELETED_DIRECTORY.fullmatch(name) is not None


def is_set_aside(name: str) -> bool:
    """Return whether the name is that of a deleted, future or stray partition."""
    return _DELETED_DIRECTORY.fullmatch(name) is not None


def parse_partition_directory(name: str) -> TopicPartition:
    """Return the partition that a directory name denotes.

    Raises:
        KafkaError: The name is not ``<topic>-<partition>``.
    """
    match = _PARTITION_DIRECTORY.fullmatch(name)
    if match is None or topic_name_problem(match[1]) is not None:
        raise KafkaError(f"directory {name!r:.80}: expected <topic>-<partition>")
    return TopicPartition(match[1], int(match[2]))
