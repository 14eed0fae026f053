"""Corpus in the repository: a text file for each target, with one base64 input per line."""

from base64 import b64decode, b64encode
from pathlib import Path

DIRECTORY = Path(__file__).parent / "corpus"


def load(name: str) -> list[bytes]:
    """Return the corpus of a target."""
    path = DIRECTORY / f"{name}.txt"
    if not path.exists():
        return []
    return [b64decode(line.partition(" ")[0]) for line in path.read_text().splitlines() if line]


def save(name: str, inputs: list[bytes]) -> None:
    """Replace the corpus of a target. It is sorted, to keep diffs small."""
    lines = sorted(b64encode(data).decode() for data in set(inputs))
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
