"""Mutation of messages field by field, with matching lengths and counts."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

from kclient.common.errors import KafkaError
from kclient.protocol.fields import ArrayOf, Field, Kind, Struct, Wire
from kclient.protocol.message import Message
from tests.fuzz.mutation import interesting_integer, spoil

TOPIC = "fuzzed"
TOPIC_ID = bytes(range(16))

_BITS = {Wire.INT8: 8, Wire.INT16: 16, Wire.INT32: 32, Wire.INT64: 64}
_TEXTS = ("", "a", TOPIC, "__consumer_offsets", "g", "range", "consumer", "..", "a/b", "ä€😀", "\0")
_DEPTH = 4

Records = Callable[[Random], bytes]
Place = tuple[Struct, str, Field]


def _no_records(random: Random) -> bytes:
    return random.randbytes(random.randrange(40))


class MessageMutator:
    """Generator and mutator of messages.

    Args:
        texts: Strings with a meaning for the target, such as topic names.
        records: Generates record sets.
        contents: Byte strings with a meaning for the target.
    """

    def __init__(
        self,
        texts: Sequence[str] = (),
        records: Records = _no_records,
        contents: Sequence[bytes] = (),
    ) -> None:
        self._texts = (*_TEXTS, *texts)
        self._records = records
        self._contents = (b"", *contents)

    def made(self, kind: type[Message], version: int, random: Random) -> bytes:
        """Return a message with random field values."""
        message = self._struct(kind, version, random, _DEPTH)
        try:
            return message.encode_bytes(version) if isinstance(message, Message) else b""
        except KafkaError:
            return kind().encode_bytes(version)

    def mutated(self, kind: type[Message], version: int, body: bytes, random: Random) -> bytes:
        """Return the body with one field changed, or with random bytes changed."""
        if random.random() < 0.35:
            return spoil(body, random)
        try:
            message = kind.decode(body, version)
            for _ in range(random.choice((1, 1, 2, 3))):
                self._change(message, version, random)
            encoded = message.encode_bytes(version)
        except KafkaError:
            return spoil(body, random) if body else self.made(kind, version, random)
        return spoil(encoded, random) if random.random() < 0.15 else encoded

    def _change(self, message: Struct, version: int, random: Random) -> None:
        places = list(_places(message, version))
        if not places:
            return
        owner, name, field = random.choice(places)
        value = getattr(owner, name)
        if isinstance(value, list) and value and random.random() < 0.7:
            value = self._changed_list(value, field, version, random)
        elif isinstance(value, bytes | memoryview) and random.random() < 0.5:
            value = spoil(bytes(value), random)
        else:
            value = self._field(field, version, random, _DEPTH)
        setattr(owner, name, value)

    def _changed_list(
        self, value: list[Any], field: Field, version: int, random: Random
    ) -> list[Any]:
        changed = list(value)
        place = random.randrange(len(changed))
        action = random.randrange(4)
        if action == 0:
            del changed[place]
        elif action == 1:
            changed += [changed[place]] * random.choice((1, 1, 2, 20))
        elif isinstance(field.kind, ArrayOf):
            changed[place] = self._value(field.kind.element, version, random, _DEPTH)
        return changed

    def _struct(self, kind: type[Struct], version: int, random: Random, depth: int) -> Struct:
        return kind(
            **{
                name: self._field(field, version, random, depth)
                for name, field in kind.fields.items()
                if version in field.versions
            }
        )

    def _field(self, field: Field, version: int, random: Random, depth: int) -> Any:
        if version in field.nullable and random.random() < 0.2:
            return None
        if random.random() < 0.1:
            return field.default_value()
        return self._value(field.kind, version, random, depth)

    def _value(self, kind: Kind, version: int, random: Random, depth: int) -> Any:
        if isinstance(kind, ArrayOf):
            count = random.choice((0, 1, 1, 2, 3)) if depth > 0 else 0
            return [self._value(kind.element, version, random, depth - 1) for _ in range(count)]
        if not isinstance(kind, Wire):
            return self._struct(kind, version, random, depth - 1)
        if kind in _BITS:
            return interesting_integer(random, _BITS[kind])
        return self._plain(kind, random)

    def _plain(self, kind: Wire, random: Random) -> Any:
        if kind is Wire.STRING:
            if random.random() < 0.05:
                return "x" * random.choice((255, 32767))
            return random.choice(self._texts)
        if kind is Wire.BYTES:
            content = random.choice(self._contents)
            return spoil(content, random) if random.random() < 0.5 else content
        return {
            Wire.BOOL: random.random() < 0.5,
            Wire.UINT16: interesting_integer(random, 16) & 0xFFFF,
            Wire.FLOAT64: random.choice((0.0, -1.5, float("inf"))),
            Wire.UUID: random.choice((bytes(16), TOPIC_ID, random.randbytes(16))),
            Wire.RECORDS: self._records(random),
        }[kind]


def _places(owner: Struct, version: int) -> Iterator[Place]:
    """Yield the fields of a message that its version has."""
    for name, field in owner.fields.items():
        if version not in field.versions:
            continue
        yield owner, name, field
        value = getattr(owner, name)
        inner = value if isinstance(value, list) else [value]
        for item in inner:
            if isinstance(item, Struct):
                yield from _places(item, version)
