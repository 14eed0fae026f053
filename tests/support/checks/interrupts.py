"""SIGINT at each place where a call of kclient may wait, one place after the other.

Places are the calls that block: a poll of sockets, the acquisition of a lock, a wait for a
condition, the start or the end of a thread. A signal is handled before such a call blocks or when
it returns, so that each has two places. Tests go through all of them; random signals miss most.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import kclient

_PACKAGE = str(Path(kclient.__file__).parent)
_WORLD = str(Path(kclient.__file__).parent / "testing")
_BLOCKING = frozenset({"acquire", "join", "poll", "select", "sleep", "wait", "wait_for"})
_THREADING = frozenset({"join", "start", "wait"})


class Interruption:
    """Sends SIGINT at one place, in the main thread and in the package's code only.

    Attributes:
        at: Number of the place, from 0.
        again: Number of further places until it sends a second one; None for once.
        reached: Number of places that were reached.
        strikes: Number of signals sent.
        place: Where they were sent.
    """

    def __init__(self, at: int, again: int | None = None) -> None:
        self.at = at
        self.again = again
        self.reached = 0
        self.strikes = 0
        self.place = ""

    def during(self, call: Callable[[], object]) -> bool:
        """Call; return whether KeyboardInterrupt ended the call."""
        before = sys.getprofile()
        try:
            sys.setprofile(self._profile)
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
            sys.setprofile(before)
        return False

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event.startswith("c_"):
            blocks = (
                event != "c_exception"
                and argument.__name__ in _BLOCKING
                and not _is_of_threading(frame.f_code)
            )
        else:
            blocks = _waits_in_virtual_time(frame) or _waits_for_a_thread(frame)
        if blocks and _is_interruptible(frame):
            self._maybe_raise(frame)

    def _maybe_raise(self, frame: FrameType) -> None:
        number, self.reached = self.reached, self.reached + 1
        if number == self.at:
            self.place += f" {_position(frame)}"
            self.strikes += 1
            if self.again is not None:
                self.at, self.again = self.reached + self.again, None
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                sys.settrace(self._resume)
                raise

    def _resume(self, frame: FrameType, event: str, argument: object) -> None:
        """Continue at the next call: an exception of a profile function removes the function."""
        sys.settrace(None)
        sys.setprofile(self._profile)


def _waits_in_virtual_time(frame: FrameType) -> bool:
    """Return whether a frame is a blocking function of a virtual world, called by the package."""
    caller = frame.f_back
    return (
        frame.f_code.co_name in _BLOCKING
        and _is_of_world(frame.f_code)
        and caller is not None
        and not _is_of_world(caller.f_code)
    )


def _waits_for_a_thread(frame: FrameType) -> bool:
    """Return whether a frame is a function of `threading` that waits, called by the package.

    Its own locks are no places: an exception inside `threading.Condition` can break the condition.
    """
    caller = frame.f_back
    return (
        frame.f_code.co_name in _THREADING
        and _is_of_threading(frame.f_code)
        and caller is not None
        and not _is_of_threading(caller.f_code)
    )


def _is_interruptible(frame: FrameType) -> bool:
    """Return whether the package called this frame, and an exception may leave it.

    It may not inside a virtual world, in a finalizer, or in the module logging, which before Python
    3.13 keeps its own lock locked.
    """
    if _waits_in_virtual_time(frame) and frame.f_back is not None:
        frame = frame.f_back
    is_of_package = False
    above: FrameType | None = frame
    while above is not None:
        code = above.f_code
        if _is_of_world(code) or code.co_name == "__del__":
            return False
        if code.co_filename == logging.__file__:
            return False
        is_of_package |= code.co_filename.startswith(_PACKAGE)
        above = above.f_back
    return is_of_package


def _is_of_threading(code: CodeType) -> bool:
    return code.co_filename == threading.__file__


def _is_of_world(code: CodeType) -> bool:
    return code.co_filename.startswith(_WORLD)


def _position(frame: FrameType | None) -> str:
    """Return the innermost function of the package, with its line."""
    while frame is not None and (
        not frame.f_code.co_filename.startswith(_PACKAGE) or _is_of_world(frame.f_code)
    ):
        frame = frame.f_back
    return "?" if frame is None else f"{frame.f_code.co_qualname}:{frame.f_lineno}"


def at_every_place(try_at: Callable[[Interruption], bool]) -> int:
    """Go through all places of a call; return the number of places tried.

    `try_at` makes a fresh start, runs the code under the interruption it is given, checks what must
    hold then, and returns whether there was an interruption. The first time there is none ends it.
    """
    tried = 0
    while try_at(Interruption(tried)):
        tried += 1
        assert tried < 500, "no end of places to interrupt"
    return tried
