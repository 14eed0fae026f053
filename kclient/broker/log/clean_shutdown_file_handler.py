"""Handler of the file that marks a clean shutdown, ``.kafka_cleanshutdown``."""

import json
from pathlib import Path

from kclient.common.files import Files

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
