"""Makes aiokafka.json: run ``python -m tests.protocol.golden.make_aiokafka``.

aiokafka writes its schemas by hand, version by version, so they are a source of their own. Its
fields are matched with ours by position.
"""

import pkgutil
from collections.abc import Iterator
from importlib import import_module, metadata
from itertools import count
from typing import Any

import aiokafka.protocol as foreign_protocol
from aiokafka.protocol.types import Array, Boolean, Bytes, Int8, Schema, String, TaggedFields

from kclient.protocol.fields import ArrayOf, Struct, StructType
from kclient.protocol.message import Message
from kclient.protocol.messages.log_offsets import ListOffsetsRequest
from kclient.protocol.messages.topics import CreatePartitionsRequest
from kclient.protocol.registry import REQUESTS
from tests.protocol.golden.vector_file import Vector, write_vectors

NESTED_OTHERWISE = {CreatePartitionsRequest}
"""Messages of which aiokafka makes other groups of fields; the bytes are the same."""

MISTAKEN = {(ListOffsetsRequest, 4), (ListOffsetsRequest, 5)}
"""Here aiokafka gives the leader epoch 8 bytes instead of 4; it never sends these versions."""


def foreign_messages() -> Iterator[tuple[type[Message], Any]]:
    """Yield our class and aiokafka's for each message that both know, by API and version."""
    for module in pkgutil.iter_modules(foreign_protocol.__path__):
        for name, kind in vars(import_module(f"{foreign_protocol.__name__}.{module.name}")).items():
            request = REQUESTS.get(getattr(kind, "API_KEY", -1))
            if request is None or not hasattr(kind, "SCHEMA") or "_v" not in name:
                continue
            message = request if "Request" in name else request.response_type
            if kind.API_VERSION in request.valid_versions and not (
                message in NESTED_OTHERWISE or (message, kind.API_VERSION) in MISTAKEN
            ):
                yield message, kind


class Filler:
    """Fills an aiokafka message and notes the values as they go into the vector file."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._numbers = count(300)

    def struct(self, schema: Schema, ours: type[Struct]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values of a struct by position, and their notes by our names."""
        names = [name for name, field in ours.fields.items() if self._version in field.versions]
        foreign = [field for field in schema.fields if field is not TaggedFields]
        pairs = [
            self.value(field, ours.fields[name].kind)
            for name, field in zip(names, foreign, strict=True)
        ]
        noted = {name: pair[1] for name, pair in zip(names, pairs, strict=True)}
        values = iter([pair[0] for pair in pairs])
        filled = tuple({} if field is TaggedFields else next(values) for field in schema.fields)
        return filled, noted

    def value(self, field: Any, ours: Any) -> tuple[Any, Any]:
        """Return a value for a field, and its note."""
        number = next(self._numbers)
        if isinstance(field, Array):
            element = ours.element if isinstance(ours, ArrayOf) else ours
            pairs = [self.element(field.array_of, element) for _ in range(2)]
            return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if isinstance(field, String):
            return f"s{number}ä", f"s{number}ä"
        if field is Bytes:
            return f"bytes{number}".encode(), f"bytes{number}".encode().hex()
        if field is Boolean:
            return number % 2 == 0, number % 2 == 0
        return (number % 128,) * 2 if field is Int8 else (number, number)

    def element(self, kind: Any, ours: Any) -> tuple[Any, Any]:
        """Return an element of an array, and its note."""
        if isinstance(kind, Schema):
            return self.struct(kind, ours)
        value, note = self.value(kind, ours)
        if isinstance(ours, StructType):
            # A struct of one field here, the field alone there; the bytes are the same.
            (name,) = (
                name for name, field in ours.fields.items() if self._version in field.versions
            )
            note = {name: note}
        return value, note


def vectors() -> Iterator[Vector]:
    """Yield a filled message for each class of aiokafka's."""
    for message, foreign in foreign_messages():
        version = foreign.API_VERSION
        filled, noted = Filler(version).struct(foreign.SCHEMA, message)
        yield Vector(message.__name__, version, noted, foreign.SCHEMA.encode(filled))


if __name__ == "__main__":
    write_vectors(
        "aiokafka.json",
        f"aiokafka {metadata.version('aiokafka')}, schemas of aiokafka.protocol",
        vectors(),
    )
