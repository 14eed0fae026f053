"""Source code of generated functions: written by line, compiled once, kept for tracebacks.

The code is derived from the message definitions of this package only, never from received bytes or
other input.
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Note = tuple[tuple[str, int], ...]
"""Fields that a line reads: path and size on the wire, 0 if variable. A path has placeholders for
array indexes: ``topics[{i1}].name``."""


class Source:
    """Source code of a function.

    Attributes:
        lines: Lines written so far.
        namespace: Values of the function's global names.
        notes: Fields of each line, by line number from 1; filled from `about`.
        about: Path of the field that the next lines read or write.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self.notes: dict[int, Note] = {}
        self.about = ""
        self._depth = 0

    def add(self, line: str, note: Note | None = None) -> None:
        """Write a line at the present indentation, with `note` or else `about` as its field."""
        self.lines.append("    " * self._depth + line)
        if note or self.about:
            self.notes[len(self.lines)] = note or ((self.about, 0),)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head` and indent the lines that are written in the context."""
        self.add(head)
        start = len(self.lines)
        self._depth += 1
        yield
        if len(self.lines) == start:
            self.add("pass")
        self._depth -= 1

    @contextmanager
    def optional_block(self, head: str) -> Iterator[None]:
        """Open a block, or none if `head` is empty."""
        if not head:
            yield
            return
        with self.block(head):
            yield

    def use(self, name: str, value: object) -> str:
        """Add `value` as a global `name`, or as a numbered one if the name is in use."""
        free = name
        number = 2
        while self.namespace.setdefault(free, value) != value:
            free = f"{name}_{number}"
            number += 1
        return free

    @property
    def text(self) -> str:
        """Source code."""
        return "\n".join(self.lines) + "\n"

    def compile(self, name: str, label: str) -> Callable[..., Any]:
        """Compile the source and return its function `name`.

        Tracebacks show `label`.
        """
        text, filename = self.text, f"<{label} {name}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        # The source has no input from outside, see the module docstring.
        exec(compile(text, filename, "exec"), self.namespace)  # noqa: S102
        function: Callable[..., Any] = self.namespace[name]
        return function
