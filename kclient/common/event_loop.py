"""Detection of running event loops, which blocking calls would block.

This package does not import asyncio: the check costs a dict look-up in a program without it.
asyncio's loop and its replacements (uvloop) register the running loop in the same function.

Calls in notebooks are allowed: the kernel runs each cell in its loop, which does nothing else until
the cell ends. A notebook is recognized by IPython's shell, which has a kernel only there. A call
from a cell cannot be distinguished from a call of a task that a cell started.
"""

import sys
from threading import get_ident, main_thread
from typing import Any

from kclient.common.errors import EventLoopError, IllegalStateError


def is_inside_event_loop() -> bool:
    """Return whether the calling thread runs an event loop that must not be blocked."""
    events = sys.modules.get("asyncio.events")
    # Another thread may be importing it.
    running_loop = getattr(events, "_get_running_loop", None)
    return running_loop is not None and running_loop() is not None and not _is_notebook()


def may_be_awaited() -> bool:
    """Return whether a task of an event loop may await the present call: it runs in a thread."""
    return "asyncio.events" in sys.modules and get_ident() != main_thread().ident


def running_event_loop(call: str) -> Any:
    """Return the asyncio loop that the calling thread runs.

    Args:
        call: Name of the caller, for the error.

    Raises:
        IllegalStateError: There is none.
    """
    running_loop = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    loop = None if running_loop is None else running_loop()
    if loop is None:
        raise IllegalStateError(
            f"{call}: got no running asyncio loop, expected one; use .result() outside of a loop"
        )
    return loop


def refuse_in_event_loop(
    call: str, in_a_thread: str, *, awaitable: bool = False, hint: str = ""
) -> None:
    """Raise if a blocking call is made in an event loop.

    Args:
        call: Name of the call.
        in_a_thread: Arguments of ``asyncio.to_thread`` to use instead.
        awaitable: Whether the object of the call can be awaited instead.
        hint: What the caller must know about the call in a thread.

    Raises:
        EventLoopError: The calling thread runs an event loop.
    """
    if is_inside_event_loop():
        raise EventLoopError(
            f"{call}: called inside a running event loop, expected a thread of its own; "
            + ("await the object itself, or " if awaitable else "")
            + f"await asyncio.to_thread({in_a_thread})"
            + (hint and f"; {hint}")
        )


def _is_notebook() -> bool:
    find_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return find_shell is not None and getattr(find_shell(), "kernel", None) is not None
