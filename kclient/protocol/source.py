"""Source text of generated functions: written line by line, compiled once, kept for tracebacks.

Everything that is compiled here is derived from the message definitions of this package; no byte
that was received, and no text from outside, ever becomes part of it.
"""

import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Note = tuple[tuple[str, int], ...]
"""The fields a line reads: path and size on the wire, 0 where that varies. A path has places for
the indexes of the arrays it leads through: ``topics[{i1}].name``."""


class Source:
    """A function under construction.

    Attributes:
        lines: The text so far.
        namespace: What the function's global names stand for.
        notes: What each line is about, by line number from 1; filled from `about`.
        about: Path of the field that the lines written next are about.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self.notes: dict[int, Note] = {}
        self.about = ""
        self._depth = 0

    def add(self, line: str, note: Note | None = None) -> None:
        """Write one line at the present indentation, about `note` or else about `about`."""
        self.lines.append("    " * self._depth + line)
        if note or self.about:
            self.notes[len(self.lines)] = note or ((self.about, 0),)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head` and indent what is written inside the context."""
        self.add(head)
        start = len(self.lines)
        self._depth += 1
        yield
        if len(self.lines) == start:
            self.add("pass")
        self._depth -= 1

    @contextmanager
    def optional_block(self, head: str) -> Iterator[None]:
        """Open a block, or none where `head` is empty."""
        if not head:
            yield
            return
        with self.block(head):
            yield

    def use(self, name: str, value: object) -> str:
        """Make `value` reachable under `name`, or under a numbered one where that is taken."""
        free = name
        number = 2
        while self.namespace.setdefault(free, value) != value:
            free = f"{name}_{number}"
            number += 1
        return free

    @property
    def text(self) -> str:
        """The whole source."""
        return "\n".join(self.lines) + "\n"

    def compile(self, name: str, label: str) -> Callable[..., Any]:
        """Compile the text and return the function it defines under `name`.

        `label` says in tracebacks what the function belongs to.
        """
        text, filename = self.text, f"<{label} {name}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        # The text is ours alone, see the module docstring.
        exec(compile(text, filename, "exec"), self.namespace)  # noqa: S102
        function: Callable[..., Any] = self.namespace[name]
        return function
