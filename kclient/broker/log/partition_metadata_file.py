"""File ``partition.metadata`` with the topic id of a partition's directory."""

from pathlib import Path

from kclient.common.broker_errors import InconsistentTopicIdError
from kclient.common.files import Files
from kclient.common.uuids import text_to_uuid, uuid_to_text

PARTITION_METADATA_FILE = "partition.metadata"


class PartitionMetadataFile:
    """Version and topic id, in two lines (Kafka: PartitionMetadataFile).

    A topic id may be recorded first and written later, but before any record: a log with records
    and no topic id could be mistaken for that of a recreated topic.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / PARTITION_METADATA_FILE
        self._recorded: bytes | None = None

    @property
    def is_dirty(self) -> bool:
        """Whether the recorded topic id is not written."""
        return self._recorded is not None

    def record(self, topic_id: bytes) -> None:
        """Record a topic id, 16 bytes, for the next `maybe_flush`."""
        self._recorded = topic_id

    def maybe_flush(self) -> None:
        """Write the recorded topic id, if there is one."""
        if self._recorded is not None:
            self.write(self._recorded)
            self._recorded = None

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self._files.exists(self._path)

    def write(self, topic_id: bytes) -> None:
        """Write the topic id, 16 bytes, and flush it."""
        text = f"version: 0\ntopic_id: {uuid_to_text(topic_id)}"
        self._files.write_atomic(self._path, text.encode())

    def read(self) -> bytes:
        """Return the topic id, 16 bytes.

        Raises:
            InconsistentTopicIdError: The file does not have the expected lines.
        """
        lines = self._files.read_bytes(self._path).decode(errors="replace").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        try:
            if fields["version"] != "0":
                raise ValueError
            return text_to_uuid(fields["topic_id"])
        except (KeyError, ValueError):
            raise InconsistentTopicIdError(
                f"{self._path}: expected the lines 'version: 0' and 'topic_id: <id>'"
            ) from None
