"""Names of files and directories."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log import log_file_utils
from kclient.broker.log.log_file_utils import base_offset_of
from kclient.common.broker_errors import (
    InvalidTopicError,
)
from kclient.common.errors import KafkaError
from kclient.common.types import TopicPartition


@pytest.mark.fault("B20")
@pytest.mark.parametrize(
    "topic", ["../x", ".", "..", "a\0b", "a/b", "a" * 250, "", "ä", "a\nb", "a\\b", "/etc"]
)
def test_topic_names_cannot_escape_the_data_directory(topic: str) -> None:
    with pytest.raises(InvalidTopicError):
        log_file_utils.partition_directory(Path("/data"), TopicPartition(topic, 0))


@pytest.mark.parametrize("number", [-1, 2**31])
def test_partition_number_must_be_in_range(number: int) -> None:
    with pytest.raises(InvalidTopicError):
        log_file_utils.partition_directory(Path("/data"), TopicPartition("t", number))


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True), st.integers(0, 2**31 - 1))
def test_partition_directory_names_are_parsed_back(topic: str, number: int) -> None:
    if topic in {".", ".."}:
        return
    partition = TopicPartition(topic, number)
    directory = log_file_utils.partition_directory(Path("/data"), partition)
    assert directory.parent == Path("/data")
    assert log_file_utils.parse_partition_directory(directory.name) == partition
    assert not log_file_utils.is_set_aside(directory.name)
    doomed = log_file_utils.deleted_directory(Path("/data"), partition, random.Random(1))
    assert doomed.parent == Path("/data")
    assert len(doomed.name) <= 255
    assert log_file_utils.is_deleted_directory(doomed.name)


@pytest.mark.parametrize("name", ["a", "a-", "-0", "a-x", "a b-0", "a-99999999999"])
def test_other_directory_names_are_rejected(name: str) -> None:
    with pytest.raises(KafkaError, match="expected <topic>-<partition>"):
        log_file_utils.parse_partition_directory(name)


def test_segment_file_names() -> None:
    path = log_file_utils.segment_file(Path("/d"), 4711, ".log")
    assert str(path) == "/d/00000000000000004711.log"
    assert log_file_utils.base_offset_of(path.name) == 4711
    for name in ("leader-epoch-checkpoint", "x.log", "00000000000000000000-0000000000.checkpoint"):
        assert log_file_utils.base_offset_of(name) is None


def test_file_name_above_max_offset_is_ignored() -> None:
    assert base_offset_of("09223372036854775807.log") == 2**63 - 1
    assert base_offset_of("09223372036854775808.log") is None
    assert base_offset_of("99999999999999999999.log") is None
