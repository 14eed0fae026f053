"""Whether a data directory can still be trusted (Kafka: LogDirFailureChannel)."""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kclient.common.broker_errors import KafkaStorageError

_log = logging.getLogger(__name__)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


def is_passing(problem: BaseException) -> bool:
    """Return whether a storage error came of something that had run out, and may be there again."""
    cause = problem.__cause__
    return isinstance(cause, OSError) and cause.errno in _NO_ROOM | _NO_DESCRIPTORS


class LogDirFailureChannel:
    """Takes the directory offline at the first error that makes its contents doubtful.

    A full disk is no such error: what was written in part was cut off, and the next append may
    find room again. Nor is it one when the process has no descriptor left: nothing was touched.
    After a failed fsync the kernel may have dropped the pages it could not write and would report
    success the second time; so nothing in the directory is believed any more until a restart has
    read it back.

    The flag is only ever set; reading it needs no lock.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._reason: str | None = None

    @property
    def is_offline(self) -> bool:
        """Whether the directory was taken offline."""
        return self._reason is not None

    def check(self) -> None:
        """Refuse to go on with a directory that is offline.

        Raises:
            KafkaStorageError: It is.
        """
        if self._reason is not None:
            raise KafkaStorageError(f"{self.data_dir} is offline: {self._reason}")

    def take_offline(self, reason: str) -> None:
        """Trust the directory no more."""
        if self._reason is None:
            self._reason = reason
            _log.error("%s goes offline: %s", self.data_dir, reason)

    @contextmanager
    def guarding(self, action: str, *, always_fatal: bool = False) -> Iterator[None]:
        """Turn the operating system's errors into storage errors.

        Args:
            action: What is being done, for the message.
            always_fatal: Whether even a full disk makes the directory doubtful, as in fsync; that
                no descriptor was left never does, for then nothing was asked of the disk.

        Raises:
            KafkaStorageError: The directory is offline, or the action failed.
        """
        self.check()
        try:
            yield
        except OSError as problem:
            passing = _NO_DESCRIPTORS if always_fatal else _NO_ROOM | _NO_DESCRIPTORS
            if problem.errno not in passing:
                self.take_offline(f"{action}: {problem}")
            raise KafkaStorageError(f"{action}: {problem}") from problem
