"""Base class of objects that cannot be sent to another process."""

from typing import NoReturn, SupportsIndex


class ProcessBound:
    """Base of clients: their threads and connections cannot be sent to another process."""

    __slots__ = ()

    _bound_by = "threads and connections of this process; create one in each process"
    """What it has that cannot be pickled, and what to do; for the error."""

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        """Refuse to be pickled or copied.

        Raises:
            TypeError: Always.
        """
        name = type(self).__name__
        raise TypeError(f"cannot pickle or copy a {name}: it has {self._bound_by}")
