"""Ctrl-C at every place where Python lets it in.

CPython looks for signals behind calls, at the begin of functions and where loops go back, never
inside a function written in C. `Interruption` raises KeyboardInterrupt at the n-th such place that
a piece of code reaches, so that a test can go through them all; random signals would miss most.
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
_CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD")


class Interruption:
    """Raises KeyboardInterrupt once, in the calling thread and in the package's code only.

    Attributes:
        at: Number of the place, from 0.
        reached: Number of places that were reached.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.reached = 0
        self.place = ""

    def during(self, call: Callable[[], object]) -> bool:
        """Calls; returns whether the call was interrupted, as it must be if it got so far."""
        before = sys.gettrace()
        try:
            sys.settrace(self._enter)
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    def _enter(self, frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        # A frame's first instruction was run before tracing it began.
        last = _Last("RESUME")

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            if event == "opcode":
                checked = last.name.startswith(_CHECKS)
                last.name = _name_of(frame)
                if checked:
                    self._maybe_raise(frame)
            return trace

        return trace

    def _maybe_raise(self, frame: FrameType) -> None:
        number, self.reached = self.reached, self.reached + 1
        if number == self.at:
            self.place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
            sys.settrace(None)
            raise KeyboardInterrupt


class _Last:
    def __init__(self, name: str) -> None:
        self.name = name


def _name_of(frame: FrameType) -> str:
    return dis.opname[_instructions(frame.f_code)[frame.f_lasti]]


@cache
def _instructions(code: CodeType) -> bytes:
    return code.co_code


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
