"""The golden vectors' file format: JSON with a vector a line, bytes as hex."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent


class Vector(NamedTuple):
    """A message as another implementation wrote it.

    Attributes:
        message: Name of the message class.
        version: Its version.
        values: Field values by name; bytes are written as hex.
        data: The bytes.
    """

    message: str
    version: int
    values: dict[str, Any]
    data: bytes


def write_vectors(name: str, source: str, vectors: Iterable[Vector]) -> None:
    """Write a file of vectors; `source` says who made the bytes, and how."""
    rows = [
        json.dumps(
            {"message": v.message, "version": v.version, "values": v.values, "hex": v.data.hex()}
        )
        for v in vectors
    ]
    head = f'{{"source": {json.dumps(source)},\n"vectors": [\n'
    (FOLDER / name).write_text(head + ",\n".join(rows) + "\n]}\n")


def read_vectors(path: Path) -> list[Vector]:
    """Read a file of vectors."""
    return [
        Vector(row["message"], row["version"], row["values"], bytes.fromhex(row["hex"]))
        for row in json.loads(path.read_text())["vectors"]
    ]
