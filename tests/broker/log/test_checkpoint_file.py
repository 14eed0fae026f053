"""Checkpoint files, partition.metadata and the clean shutdown file."""

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
