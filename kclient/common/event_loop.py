"""Keeps calls that wait out of event loops, which would stand still meanwhile.

A loop is looked for where one has been imported and nowhere else: this package knows no asyncio,
and a program without it pays for a look into a dict. asyncio's own loop and those that stand in for
it (uvloop) tell the running one by the same function.

Notebooks are let through. Their kernel runs each cell inside its loop, in which nothing else is to
be done until the cell has ended. It is known by IPython's shell, which there, and only there, has a
kernel; whether a call comes from a cell or from a task that a cell has left behind cannot be told.
"""

import sys
from typing import Any

from kclient.common.errors import EventLoopError, IllegalStateError


def is_inside_event_loop() -> bool:
    """Return whether the calling thread runs an event loop that must not be held up."""
    events = sys.modules.get("asyncio.events")
    # Another thread may be in the midst of importing it.
    running_loop = getattr(events, "_get_running_loop", None)
    return running_loop is not None and running_loop() is not None and not _is_notebook()


def running_event_loop(call: str) -> Any:
    """Return the asyncio loop that the calling thread runs.

    Args:
        call: Names the caller in the error.

    Raises:
        IllegalStateError: It runs none.
    """
    running_loop = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    loop = None if running_loop is None else running_loop()
    if loop is None:
        raise IllegalStateError(
            f"{call}: got no running asyncio loop, expected one; use .result() outside of a loop"
        )
    return loop


def refuse_in_event_loop(call: str, in_a_thread: str, *, awaitable: bool = False) -> None:
    """Refuse a call that would wait where an event loop would wait with it.

    Args:
        call: Name of the call.
        in_a_thread: What to give to ``asyncio.to_thread`` instead.
        awaitable: Whether the object of the call can be awaited instead.

    Raises:
        EventLoopError: The calling thread runs an event loop.
    """
    if is_inside_event_loop():
        raise EventLoopError(
            f"{call}: called inside a running event loop, expected a thread of its own; "
            + ("await the object itself, or " if awaitable else "")
            + f"await asyncio.to_thread({in_a_thread})"
        )


def _is_notebook() -> bool:
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find_shell is not None and getattr(find_shell(), "kernel", None) is not None
