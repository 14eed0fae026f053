"""partition.metadata: which topic id a partition's directory belongs to."""

from pathlib import Path

from kclient.common.broker_errors import InconsistentTopicIdError
from kclient.common.files import Files
from kclient.common.uuids import text_to_uuid, uuid_to_text

PARTITION_METADATA_FILE = "partition.metadata"


class PartitionMetadataFile:
    """A version and a topic id, in two lines (Kafka: PartitionMetadataFile)."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._path = directory / PARTITION_METADATA_FILE

    def exists(self) -> bool:
        """Return whether the file was written."""
        return self._files.exists(self._path)

    def write(self, topic_id: bytes) -> None:
        """Write the topic id, 16 bytes, flushed."""
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
