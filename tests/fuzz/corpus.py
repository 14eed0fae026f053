"""The inputs kept in the repository: a text file a target, one input a line, in base64."""

from base64 import b64decode, b64encode
from pathlib import Path

DIRECTORY = Path(__file__).parent / "corpus"


def load(name: str) -> list[bytes]:
    """Return the inputs kept for a target."""
    path = DIRECTORY / f"{name}.txt"
    if not path.exists():
        return []
    return [b64decode(line.partition(" ")[0]) for line in path.read_text().splitlines() if line]


def save(name: str, inputs: list[bytes]) -> None:
    """Replace the inputs kept for a target; they are sorted, so that changes show as such."""
    lines = sorted(b64encode(data).decode() for data in set(inputs))
    DIRECTORY.mkdir(exist_ok=True)
    (DIRECTORY / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
