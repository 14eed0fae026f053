"""Takes into the corpus what reaches new code: ``python -m tests.fuzz.distil TARGET DIRECTORY``.

The directory holds an input a file, as a run leaves them in ``build/fuzz/<target>/corpus``. Small
inputs come first; one is kept if it runs a line of the package that no input before it ran. What
is in the corpus already stays.
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

_OURS = ("kclient", "<")  # modules, and the codecs that are generated
_MAX_SIZE = 4096

Line = tuple[CodeType, int]


class _Tracer:
    """Notes the lines that run."""

    def __init__(self) -> None:
        self.lines: set[Line] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        """Follow a call into code of ours."""
        name = frame.f_code.co_filename
        if "/kclient/" not in name and not name.startswith(_OURS):
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.lines.add((frame.f_code, frame.f_lineno))
        return self._line


def distilled(name: str, inputs: Iterable[bytes], limit: int) -> list[bytes]:
    """Return the inputs, at most `limit`, that run lines which those before them did not."""
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
    fuzzed.settle()
    return kept


def _lines(run: Any, data: bytes) -> set[Line]:
    tracer = _Tracer()
    with _tracing(tracer), contextlib.suppress(Exception):  # a finding is not judged here
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
