"""Offline state of a data directory (Kafka: LogDirFailureChannel)."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kclient.common.broker_errors import KafkaStorageError

_log = logging.getLogger(__name__)
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


def is_transient(problem: BaseException) -> bool:
    """Return whether a storage error has a transient cause: no space or no descriptors."""
    cause = problem.__cause__
    return isinstance(cause, OSError) and cause.errno in _NO_SPACE | _NO_DESCRIPTORS


class LogDirFailureChannel:
    """Takes the directory offline at the first error after which its contents are unknown.

    A full disk is not such an error: the partial write was truncated, and the next append may
    succeed. Neither is a lack of descriptors: no file was changed. After a failed fsync the kernel
    may have dropped the pages it could not write, and a second fsync would report success.
    The directory then stays offline until a restart has read the files back.

    The flag is only ever set; reading it needs no lock.

    Attributes:
        is_offline: Whether the directory was taken offline.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._reason = ""
        self.is_offline = False

    def check(self) -> None:
        """Check that the directory is online.

        Raises:
            KafkaStorageError: The directory is offline.
        """
        if self.is_offline:
            raise KafkaStorageError(f"{self.data_dir} is offline: {self._reason}")

    def take_offline(self, reason: str) -> None:
        """Take the directory offline."""
        if not self.is_offline:
            self._reason = reason
            self.is_offline = True
            _log.error("%s is offline: %s", self.data_dir, reason)

    @contextmanager
    def guarding(self, action: str, *, always_fatal: bool = False) -> Iterator[None]:
        """Convert the operating system's errors into storage errors.

        Args:
            action: Description of the action, for the message.
            always_fatal: Whether a full disk takes the directory offline too, as for fsync. A lack
                of descriptors never does.

        Raises:
            KafkaStorageError: The directory is offline, or the action failed.
        """
        self.check()
        try:
            yield
        except OSError as problem:
            error = self.storage_error(action, problem, always_fatal=always_fatal)
            raise error from problem

    def storage_error(
        self, action: str, problem: OSError, *, always_fatal: bool = False
    ) -> KafkaStorageError:
        """Return the storage error for an error, and take the directory offline if it is fatal."""
        transient = _NO_DESCRIPTORS if always_fatal else _NO_SPACE | _NO_DESCRIPTORS
        if problem.errno not in transient:
            self.take_offline(f"{action}: {problem}")
        return KafkaStorageError(f"{action}: {problem}")
