"""Checkpoint files, leader epochs, partition.metadata, clean shutdown file, file names."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.broker.log import log_file_utils
from kclient.broker.log.checkpoint_file import (
    CleanShutdownFileHandler,
    LeaderEpochCheckpointFile,
    OffsetCheckpointFile,
    PartitionMetadataFile,
)
from kclient.broker.log.leader_epoch_file_cache import LeaderEpochFileCache
from kclient.broker.log.log_errors import MalformedCheckpointError
from kclient.common.broker_errors import InconsistentTopicIdError, InvalidTopicError
from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from tests.support.disks.faulty_files import FaultySystemFiles

FILES = SystemFiles()


def test_offset_checkpoint_has_kafkas_format(tmp_path: Path) -> None:
    file = OffsetCheckpointFile(FILES, tmp_path, "recovery-point-offset-checkpoint")
    assert file.read() == {}
    offsets = {TopicPartition("b", 1): 9, TopicPartition("a-b", 0): 4711}
    file.write(offsets)
    written = (tmp_path / "recovery-point-offset-checkpoint").read_text()
    assert written == "0\n2\na-b 0 4711\nb 1 9\n"
    assert file.read() == offsets
    file.write({})
    assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    assert file.read() == {}


@pytest.mark.fault("B3")
@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 x\n", b"0", b"\xff\xfe\n", b"x\ny\n"],
)
def test_malformed_checkpoints_are_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(MalformedCheckpointError, match="c: expected"):
        OffsetCheckpointFile(FILES, tmp_path, "c").read()


def test_empty_checkpoint_file_has_no_entries(tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"")
    assert OffsetCheckpointFile(FILES, tmp_path, "c").read() == {}


def epochs(directory: Path) -> LeaderEpochFileCache:
    cache = LeaderEpochFileCache(LeaderEpochCheckpointFile(FILES, directory))
    cache.load()
    return cache


def test_epochs_survive_restart(tmp_path: Path) -> None:
    cache = epochs(tmp_path)
    assert cache.latest_epoch is None
    assert cache.end_offset_for(0, 10) == (-1, -1)
    cache.assign(2, 0)
    cache.assign(2, 5)
    cache.assign(4, 11)
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n2 0\n4 11\n"
    cache = epochs(tmp_path)
    assert cache.entries == ((2, 0), (4, 11))
    with pytest.raises(InvalidArgumentError, match="leader epoch"):
        cache.assign(-1, 5)


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(-1, (-1, -1)), (0, (0, 3)), (2, (2, 11)), (3, (2, 11)), (4, (4, 20)), (5, (-1, -1))],
)
def test_end_offset_for_epoch(tmp_path: Path, epoch: int, expected: tuple[int, int]) -> None:
    cache = epochs(tmp_path)
    cache.assign(2, 3)
    cache.assign(4, 11)
    assert cache.end_offset_for(epoch, 20) == expected


def test_epochs_are_truncated_from_both_ends(tmp_path: Path) -> None:
    cache = epochs(tmp_path)
    for epoch, start in ((1, 0), (2, 10), (3, 20)):
        cache.assign(epoch, start)
    assert [cache.epoch_for_offset(offset) for offset in (0, 9, 10, 25)] == [1, 1, 2, 3]
    cache.truncate_from_start(15)
    assert cache.entries == ((2, 15), (3, 20))
    assert cache.epoch_for_offset(14) == -1
    cache.truncate_from_end(20)
    assert epochs(tmp_path).entries == ((2, 15),)
    cache.assign(5, 12)
    assert epochs(tmp_path).entries == ((5, 12),)
    cache.clear()
    assert epochs(tmp_path).entries == ()


def test_failed_epoch_write_is_rolled_back(tmp_path: Path) -> None:
    files = FaultySystemFiles()
    cache = LeaderEpochFileCache(LeaderEpochCheckpointFile(files, tmp_path))
    cache.assign(1, 0)
    files.fail("write", "leader-epoch-checkpoint")
    with pytest.raises(OSError, match="Input/output"):
        cache.assign(2, 5)
    with pytest.raises(OSError, match="Input/output"):
        cache.clear()
    assert cache.entries == ((1, 0),)


def test_topic_id(tmp_path: Path) -> None:
    file = PartitionMetadataFile(FILES, tmp_path)
    assert not file.exists()
    file.write(bytes(range(16)))
    text = (tmp_path / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert file.read() == bytes(range(16))


@pytest.mark.parametrize(
    "content", [b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\ntopic_id: x\n"]
)
def test_corrupt_partition_metadata_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)
    with pytest.raises(InconsistentTopicIdError, match=r"partition\.metadata"):
        PartitionMetadataFile(FILES, tmp_path).read()


def test_clean_shutdown_file(tmp_path: Path) -> None:
    mark = CleanShutdownFileHandler(FILES, tmp_path)
    assert (mark.exists(), mark.read_broker_epoch()) == (False, -1)
    mark.write(11)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":11}'
    assert (mark.exists(), mark.read_broker_epoch()) == (True, 11)
    mark.delete()
    assert not mark.exists()
    for content in ("", "{}", "[]", '{"brokerEpoch":"x"}'):
        (tmp_path / ".kafka_cleanshutdown").write_text(content)
        assert (mark.exists(), mark.read_broker_epoch()) == (True, -1)


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
