"""Local variables in the traceback of an error, as error trackers store them."""

import traceback
from collections.abc import Iterator

import kclient

_PACKAGE = kclient.__file__.rpartition("/")[0]


def shown_locals(error: BaseException) -> str:
    """Return the values of the variables of kclient's functions, for an error and its causes."""
    return "\n".join(
        f"{frame.f_code.co_qualname} {name} = {value!r}"
        for each in _chain(error)
        for frame, _ in traceback.walk_tb(each.__traceback__)
        if frame.f_code.co_filename.startswith(_PACKAGE)
        for name, value in frame.f_locals.items()
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending = [error]
    while pending:
        each = pending.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            pending += [each.__cause__, each.__context__]
            yield each
