"""The real file system, with ways to make it fail."""

import errno

from kclient.common.system_files import SystemFiles
from kclient.testing.virtual import faulty_files


class FaultyFiles(faulty_files.FaultyFiles):
    """The real file system until `fail` is called."""

    def __init__(self) -> None:
        self._errors = faulty_files.ErrorsOnDemand()
        super().__init__(SystemFiles(), self._errors)

    def fail(self, action: str, suffix: str, code: int = errno.EIO) -> None:
        """Let an action on files with a suffix fail from now on."""
        self._errors.fail(action, suffix, code)

    def heal(self) -> None:
        self._errors.heal()
