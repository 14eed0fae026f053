"""Vectors of other implementations: they are decoded correctly and encoded to the same bytes.

The vectors are in ``golden/``; each file names its source. The modules there created them.
"""

from typing import Any

import pytest

from kclient.protocol.fields import ArrayOf, Struct, Wire
from kclient.protocol.message import VersionedRecord
from tests.protocol.catalogue import BY_NAME
from tests.protocol.golden.vector_file import FOLDER, Vector, read_vectors

FILES = sorted(FOLDER.glob("*.json"))
VECTORS = [vector for path in FILES for vector in read_vectors(path)]


def value_of(kind: Wire | ArrayOf | type[Struct], noted: Any) -> Any:
    """Return the value of a note in a vector file."""
    if noted is None:
        return None
    if isinstance(kind, ArrayOf):
        return [value_of(kind.element, item) for item in noted]
    if not isinstance(kind, Wire):
        return kind(**{name: value_of(kind.fields[name].kind, noted[name]) for name in noted})
    return bytes.fromhex(noted) if kind in {Wire.UUID, Wire.BYTES, Wire.RECORDS} else noted


@pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: f"{vector.message}-v{vector.version}"
)
def test_vector(vector: Vector) -> None:
    message = BY_NAME[vector.message]
    expected = value_of(message, vector.values)
    if issubclass(message, VersionedRecord):
        assert message.decode_versioned(vector.data) == expected
        assert expected.encode_versioned(vector.version) == vector.data
        return
    assert message.decode(vector.data, vector.version) == expected
    assert expected.encode_bytes(vector.version) == vector.data


@pytest.mark.parametrize("name", ["aiokafka.json", "kafka_python.json"])
def test_generated_vectors_have_all_fields(name: str) -> None:
    for vector in read_vectors(FOLDER / name):
        fields = BY_NAME[vector.message].fields.values()
        expected = {field.name for field in fields if vector.version in field.versions}
        assert set(vector.values) == expected


def test_vectors_come_from_several_implementations() -> None:
    names = ["aiokafka.json", "kafka_python.json", "librdkafka.json"]
    assert [path.name for path in FILES] == names
