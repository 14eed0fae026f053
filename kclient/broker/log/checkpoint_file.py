"""Checkpoint files: text files of a version, a count and lines (Kafka: CheckpointFile).

::

    0
    2
    orders 0 4711
    orders 1 15

Kafka stores offsets of partitions, and the leader epochs of a partition, in this format.
"""

import errno
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from kclient.common.broker_errors import InconsistentTopicIdError
from kclient.common.errors import KafkaError
from kclient.common.files import Files
from kclient.common.types import TopicPartition
from kclient.common.uuids import text_to_uuid, uuid_to_text

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"

_VERSION = 0


class MalformedCheckpointError(KafkaError):
    """A checkpoint file does not have the expected lines."""


class CheckpointFile:
    """Lines after a version and a count; every write replaces the file.

    Attributes:
        name: Name of the file.
    """

    def __init__(self, files: Files, path: Path) -> None:
        self._files = files
        self._path = path
        self.name = path.name

    def write(self, lines: Iterable[str]) -> None:
        """Replace the contents and flush them."""
        listed = list(lines)
        text = "\n".join([str(_VERSION), str(len(listed)), *listed]) + "\n"
        self._files.write_atomic(self._path, text.encode())

    def read(self) -> list[list[str]]:
        """Return the lines, split at spaces; none if the file is absent or empty.

        Raises:
            MalformedCheckpointError: Unexpected version, count or encoding.
        """
        if not self._files.exists(self._path):
            return []
        data = self._files.read_bytes(self._path)
        if not data:
            return []
        try:
            version, count, *lines = data.decode().splitlines()
            well_formed = int(version) == _VERSION and int(count) == len(lines)
        except ValueError:
            well_formed, lines = False, []
        if not well_formed:
            raise MalformedCheckpointError(
                f"{self.name}: expected version {_VERSION}, a count and as many lines"
            )
        return [line.split(" ") for line in lines]


class OffsetCheckpointFile:
    """Checkpoint of one offset for each partition (Kafka: OffsetCheckpointFile).

    Attributes:
        name: Name of the file.
    """

    def __init__(self, files: Files, data_dir: Path, name: str) -> None:
        self.name = name
        self._file = CheckpointFile(files, data_dir / name)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace all offsets and flush them."""
        self._file.write(
            f"{topic} {number} {offset}" for (topic, number), offset in sorted(offsets.items())
        )

    def read(self) -> dict[TopicPartition, int]:
        """Return the offsets; none if the file is absent.

        Raises:
            MalformedCheckpointError: A line is not a topic, a partition and an offset.
        """
        try:
            return {
                TopicPartition(topic, int(number)): int(offset)
                for topic, number, offset in self._file.read()
            }
        except ValueError:
            raise MalformedCheckpointError(
                f"{self._file.name}: expected lines of topic, partition and offset"
            ) from None


class LeaderEpochCheckpointFile:
    """Checkpoint of a partition's leader epochs and their first offsets.

    (Kafka: LeaderEpochCheckpointFile)
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._file = CheckpointFile(files, directory / LEADER_EPOCH_CHECKPOINT)

    def write(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace the (epoch, start offset) pairs and flush them."""
        self._file.write(f"{epoch} {start_offset}" for epoch, start_offset in entries)

    def read(self) -> list[tuple[int, int]]:
        """Return the (epoch, start offset) pairs; none if the file is absent.

        Raises:
            MalformedCheckpointError: A line is not an epoch and an offset.
        """
        try:
            return [(int(epoch), int(offset)) for epoch, offset in self._file.read()]
        except ValueError:
            raise MalformedCheckpointError(
                f"{self._file.name}: expected lines of epoch and start offset"
            ) from None


CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


class CleanShutdownFileHandler:
    """Writes the file at shutdown, reads and removes it at the start (KIP-966)."""

    def __init__(self, files: Files, data_dir: Path) -> None:
        self._files = files
        self._path = data_dir / CLEAN_SHUTDOWN_FILE

    def write(self, broker_epoch: int = -1) -> None:
        """Write the file and flush it."""
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._files.write_atomic(self._path, content.encode())

    def exists(self) -> bool:
        """Return whether the last shutdown was clean."""
        return self._files.exists(self._path)

    def read_broker_epoch(self) -> int:
        """Return the broker epoch of the last clean shutdown, or -1 if unknown."""
        if not self.exists():
            return -1
        try:
            epoch = json.loads(self._files.read_bytes(self._path))["brokerEpoch"]
        except (ValueError, KeyError, TypeError):
            return -1
        return epoch if isinstance(epoch, int) else -1

    def delete(self) -> None:
        """Remove the file and flush the directory, so that a crash cannot restore it."""
        if self.exists():
            self._files.remove(self._path)
            self._files.flush_directory(self._path.parent)


PARTITION_METADATA_FILE = "partition.metadata"


_NO_LINK = frozenset(
    {
        errno.ENOENT,
        errno.EEXIST,
        errno.EMLINK,
        errno.EPERM,
        errno.EACCES,
        errno.EXDEV,  # a partition's directory may be a mount point
        errno.ENOSYS,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
    }
)
"""Errors with which a file of its own is written: file systems differ in the links they have."""


def _metadata(topic_id: bytes) -> bytes:
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


class PartitionMetadataFile:
    """Version and topic id, in two lines (Kafka: PartitionMetadataFile).

    Attributes:
        path: Path of the file.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self.path = directory / PARTITION_METADATA_FILE

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self._files.exists(self.path)

    def write(self, topic_id: bytes) -> None:
        """Write the topic id, 16 bytes, and flush it."""
        self._files.write_atomic(self.path, _metadata(topic_id))

    def write_as(self, other: "PartitionMetadataFile", topic_id: bytes) -> None:
        """Write the topic id as another name of another partition's file, if that has it.

        This spares the flush of a file, most of the time that a new partition takes. No file is
        changed in place: a new one replaces it.
        """
        try:
            if self._files.read_bytes(other.path) == _metadata(topic_id):
                self._files.link(other.path, self.path)
                return
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
        self.write(topic_id)

    def read(self) -> bytes:
        """Return the topic id, 16 bytes.

        Raises:
            InconsistentTopicIdError: The file does not have the expected lines.
        """
        lines = self._files.read_bytes(self.path).decode(errors="replace").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        try:
            if fields["version"] != "0":
                raise ValueError
            return text_to_uuid(fields["topic_id"])
        except (KeyError, ValueError):
            raise InconsistentTopicIdError(
                f"{self.path}: expected the lines 'version: 0' and 'topic_id: <id>'"
            ) from None
