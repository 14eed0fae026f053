"""Ctrl-C at every place where Python lets it in.

CPython looks for signals behind calls of what is written in C, at the begin of functions and where
loops go back; never inside a function written in C, nor where one written in Python returns.
`Interruption` raises KeyboardInterrupt at the n-th such place that a piece of code reaches, so that
a test can go through them all; random signals would miss most.
"""

import dis
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import kclient

_PACKAGE = str(Path(kclient.__file__).parent)
_WORLD = str(Path(kclient.__file__).parent / "testing")
_CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD")


class Interruption:
    """Raises KeyboardInterrupt, in the calling thread and in the package's code only.

    Attributes:
        at: Number of the place, from 0.
        again: How many places later it raises once more, if it does.
        reached: Number of places that were reached.
        strikes: How often it raised.
        place: Where it did.
    """

    def __init__(self, at: int, again: int | None = None) -> None:
        self.at = at
        self.again = again
        self.reached = 0
        self.strikes = 0
        self.place = ""
        # The instruction that each frame ran last, and where it stands.
        self._last: dict[FrameType | None, tuple[str, int]] = {}

    def during(self, call: Callable[[], object]) -> bool:
        """Calls; returns whether the call was interrupted, as it must be if it got so far."""
        before = sys.gettrace()
        try:
            sys.settrace(self._enter)
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
            sys.settrace(before)
            self._last.clear()
        return False

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        caller = self._last.get(frame.f_back)
        # A class is called by way of C, which then calls its __init__.
        if caller is not None and not frame.f_code.co_name.startswith("__"):
            self._last[frame.f_back] = "a call of Python by Python", 0
        if not frame.f_code.co_filename.startswith(_PACKAGE) or _is_out_of_reach(frame):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        # That was run before the tracing of this frame began.
        self._last[frame] = "RESUME", frame.f_lasti
        return self._trace

    def _trace(self, frame: FrameType, event: str, argument: object) -> Any:
        if event == "opcode":
            name, offset = self._last[frame]
            self._last[frame] = _name_of(frame), frame.f_lasti
            # Raised here it must find the same handler as behind the instruction before.
            handlers = _handlers(frame.f_code)
            if name.startswith(_CHECKS) and handlers(offset) == handlers(frame.f_lasti):
                self._maybe_raise(frame)
        elif event == "return":
            del self._last[frame]
        return self._trace

    def _maybe_raise(self, frame: FrameType) -> None:
        number, self.reached = self.reached, self.reached + 1
        if number == self.at:
            self.place += f" {frame.f_code.co_qualname}:{frame.f_lineno}"
            self.strikes += 1
            if self.again is not None:
                self.at, self.again = self.reached + self.again, None
                sys.setprofile(self._go_on)
            sys.settrace(None)
            raise KeyboardInterrupt

    def _go_on(self, frame: FrameType, event: str, argument: object) -> None:
        """Trace again from the next call on: what a trace function raises ends all tracing."""
        sys.setprofile(None)
        above: FrameType | None = frame
        while above is not None:
            if above in self._last:
                # Where it stands now is no place: the exception has just come by.
                self._last[above] = "NOP", above.f_lasti
                above.f_trace = self._trace
            above = above.f_back
        sys.settrace(self._enter)


def _is_out_of_reach(frame: FrameType | None) -> bool:
    """Returns whether a frame runs on behalf of a virtual world, where no Ctrl-C comes.

    Or of a finalizer, which lets no exception out.
    """
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_WORLD) or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _name_of(frame: FrameType) -> str:
    return dis.opname[_instructions(frame.f_code)[frame.f_lasti]]


@cache
def _instructions(code: CodeType) -> bytes:
    return code.co_code


@cache
def _handlers(code: CodeType) -> Callable[[int], int]:
    """Returns a function that tells where an exception at an offset goes, -1 for out of the frame.

    The form of the table is told in CPython's exception_handling_notes.txt.
    """
    numbers: list[int] = []
    number = 0
    for byte in code.co_exceptiontable:
        number = number << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(number)
            number = 0
    rows = [
        (start * 2, (start + length) * 2, target * 2)
        for start, length, target in zip(numbers[::4], numbers[1::4], numbers[2::4], strict=True)
    ]

    def handler(offset: int) -> int:
        return next((target for start, end, target in rows if start <= offset < end), -1)

    return handler


def at_every_place(try_at: Callable[[Interruption], bool], *, step: int = 1, first: int = 0) -> int:
    """Goes through all places of a piece of code, or every `step`-th; returns how many it tried.

    `try_at` makes a fresh start, runs the code under the interruption it is given, checks what must
    hold then, and returns whether there was an interruption: the first time there is none ends it.
    """
    tried = 0
    while try_at(Interruption(first + tried * step)):
        tried += 1
        assert tried < 5_000, "no end of places to interrupt"
    return tried
