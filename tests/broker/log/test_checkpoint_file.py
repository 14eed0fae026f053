"""Checkpoint files, partition.metadata and the clean shutdown file."""

import errno
from pathlib import Path

import pytest

from kclient.broker.log.checkpoint_file import (
    CleanShutdownFileHandler,
    MalformedCheckpointError,
    OffsetCheckpointFile,
    PartitionMetadataFile,
)
from kclient.common.broker_errors import InconsistentTopicIdError
from kclient.common.system_files import SystemFiles
from kclient.common.types import TopicPartition
from tests.support.disks.faulty_files import ErrorsOnDemand, FaultyFiles

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


def test_topic_id(tmp_path: Path) -> None:
    file = PartitionMetadataFile(FILES, tmp_path)
    assert not file.exists()
    file.write(bytes(range(16)))
    text = (tmp_path / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert file.read() == bytes(range(16))


def test_topic_id_is_written_as_another_name_of_the_same_file(tmp_path: Path) -> None:
    directories = [tmp_path / name for name in ("t-0", "t-1", "t-2")]
    for directory in directories:
        directory.mkdir()
    first, second, third = (PartitionMetadataFile(FILES, directory) for directory in directories)
    second.write_as(first, bytes(16))  # the first one has no file yet
    first.write(bytes(range(16)))
    second.write_as(first, bytes(range(16)))  # it has a file already
    third.write_as(first, bytes(range(16)))
    assert [file.read() for file in (first, second, third)] == [bytes(range(16))] * 3
    inodes = [file.path.stat().st_ino for file in (first, second, third)]
    assert inodes[0] == inodes[2] != inodes[1]
    first.write(bytes(16))
    assert [file.read() for file in (first, third)] == [bytes(16), bytes(range(16))]


def test_topic_id_of_another_topic_is_not_taken_over(tmp_path: Path) -> None:
    first, second = (PartitionMetadataFile(FILES, tmp_path / name) for name in ("t-0", "t-1"))
    for file in (first, second):
        file.path.parent.mkdir()
    first.write(bytes(16))
    second.write_as(first, bytes(range(16)))
    assert [file.read() for file in (first, second)] == [bytes(16), bytes(range(16))]


@pytest.mark.parametrize("code", [errno.EMLINK, errno.EPERM, errno.EXDEV, errno.ENOSPC])
def test_topic_id_is_written_where_the_file_system_has_no_links(tmp_path: Path, code: int) -> None:
    faults = ErrorsOnDemand()
    files = FaultyFiles(FILES, faults)
    first, second = (PartitionMetadataFile(files, tmp_path / name) for name in ("t-0", "t-1"))
    for file in (first, second):
        file.path.parent.mkdir()
    first.write(bytes(16))
    faults.fail("link", "partition.metadata", code)
    if code == errno.ENOSPC:
        with pytest.raises(OSError, match=r"partition\.metadata"):
            second.write_as(first, bytes(16))
        assert not second.exists()
    else:
        second.write_as(first, bytes(16))
        assert second.read() == bytes(16)


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
