"""Command that adds inputs which reach new code to the corpus.

``python -m tests.fuzz.distil TARGET DIRECTORY``. The directory contains one file per input, as a
run writes them to ``build/fuzz/<target>/corpus``. Inputs are tried in order of size. An input is
added if it runs a line of kclient that no input before it has run. The present corpus is kept.
"""

import argparse
import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from tests.fuzz import corpus
from tests.fuzz.targets import NAMES, target

_OURS = ("kclient", "<")  # modules and generated codecs
_MAX_SIZE = 4096

Line = tuple[CodeType, int]


class _Tracer:
    """Trace function that collects the lines that run."""

    def __init__(self) -> None:
        self.lines: set[Line] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        """Trace calls of functions of kclient."""
        name = frame.f_code.co_filename
        if "/kclient/" not in name and not name.startswith(_OURS):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.lines.add((frame.f_code, frame.f_lineno))
        return self._line


def distilled(name: str, inputs: Iterable[bytes], limit: int) -> list[bytes]:
    """Return at most `limit` inputs, each of which runs lines that no input before it has run."""
    fuzzed = target(name)
    seen: set[Line] = set()
    kept: list[bytes] = []
    for data in [*fuzzed.seeds(), *corpus.load(name)]:
        seen |= _lines(fuzzed.run, data)
    for data in sorted(inputs, key=len):
        if len(kept) >= limit or len(data) > _MAX_SIZE:
            break
        lines = _lines(fuzzed.run, data)
        if not lines <= seen:
            seen |= lines
            kept.append(data)
    fuzzed.finish()
    return kept


def _lines(run: Any, data: bytes) -> set[Line]:
    tracer = _Tracer()
    with _tracing(tracer), contextlib.suppress(Exception):  # findings are ignored here
        run(data)
    return tracer.lines


@contextlib.contextmanager
def _tracing(tracer: _Tracer) -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.distil", description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--limit", type=int, default=100, help="inputs to add at most")
    options = parser.parse_args()
    inputs = [path.read_bytes() for path in sorted(options.directory.iterdir())]
    new = distilled(options.target, inputs, options.limit)
    corpus.save(options.target, [*corpus.load(options.target), *new])
    print(f"{options.target}: {len(new)} of {len(inputs)} inputs added")  # noqa: T201 - a command


if __name__ == "__main__":
    main()
