"""Makes kafka_python.json: run ``python -m tests.protocol.golden.make_kafka_python``.

Values are chosen by walking kafka-python's own schema, so that a field missing here would show.
"""

from collections.abc import Iterator
from importlib import import_module, metadata
from itertools import count
from typing import Any

from tests.protocol.catalogue import MESSAGES
from tests.protocol.golden.vector_file import Vector, write_vectors

MODULES = [
    "kafka.protocol.admin",
    "kafka.protocol.consumer",
    "kafka.protocol.metadata",
    "kafka.protocol.producer",
]

RENAMED = {
    "DescribeClusterResponse": "cluster_authorized_operations",
    "MetadataResponse": "cluster_authorized_operations",
    "MetadataResponseTopic": "topic_authorized_operations",
}
"""What kafka-python calls ``authorized_operations``, by the struct that has it."""


def foreign_messages() -> dict[str, Any]:
    """Return kafka-python's message classes by name."""
    return {name: kind for module in MODULES for name, kind in vars(import_module(module)).items()}


class Filler:
    """Fills a kafka-python message and notes the values as they go into the vector file."""

    def __init__(self, version: int, *, bare: bool) -> None:
        self._version = version
        self._bare = bare
        self._numbers = count(300)

    def struct(self, schema: Any, data_class: Any) -> tuple[Any, dict[str, Any]]:
        """Return a filled struct and its noted values."""
        filled, noted = {}, {}
        for field in schema.fields.values():
            if field.for_version_q(self._version):
                name = field.name
                if name == "authorized_operations":
                    name = RENAMED.get(data_class.__name__, name)
                filled[field.name], noted[name] = self.value(field)
        return data_class(version=self._version, **filled), noted

    def value(self, field: Any) -> tuple[Any, Any]:
        """Return a value for a field, and its note."""
        number = next(self._numbers)
        if self._bare and field.nullable_for_version_q(self._version):
            return None, None
        if field.is_struct_array():
            pairs = [self.struct(field, field.data_class) for _ in range(0 if self._bare else 2)]
            return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if field.is_array():
            pairs = [self.primitive(field.array_of.type_str, number + step) for step in range(2)]
            return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if field.is_struct():
            return self.struct(field, field.data_class)
        return self.primitive(field.type_str, number)

    def primitive(self, label: str, number: int) -> tuple[Any, Any]:
        """Return a value of a primitive type, and its note."""
        if label == "uuid":
            uuid = import_module("uuid").UUID(int=number << 64 | number)
            return uuid, uuid.hex
        if label in {"bytes", "records"}:
            data = f"{label}{number}".encode()
            return data, data.hex()
        if label == "string":
            return f"s{number}ä", f"s{number}ä"
        if label == "bitfield":
            return {3, number % 31}, 1 << 3 | 1 << number % 31
        if label == "bool":
            return number % 2 == 0, number % 2 == 0
        number = number % 128 if label == "int8" else number
        return -number, -number


def vectors() -> Iterator[Vector]:
    """Yield every message that both sides know, in every version that both sides know."""
    theirs = foreign_messages()
    for message in MESSAGES:
        foreign = theirs.get(message.__name__)
        if foreign is None:
            continue
        highest = min(message.max_version, foreign.max_version)
        turning = {message.min_version, message.flexible_versions.lowest, highest}
        for version in range(message.min_version, highest + 1):
            yield vector(foreign, version, bare=False)
            if version in turning:
                yield vector(foreign, version, bare=True)


def vector(foreign: Any, version: int, *, bare: bool) -> Vector:
    """Return a message, with all its fields or with the fewest possible."""
    filled, noted = Filler(version, bare=bare).struct(foreign._struct, foreign)
    return Vector(foreign.__name__, version, noted, bytes(filled.encode(version=version)))


if __name__ == "__main__":
    write_vectors(
        "kafka_python.json",
        f"kafka-python {metadata.version('kafka-python')}, encoders of kafka.protocol",
        vectors(),
    )
