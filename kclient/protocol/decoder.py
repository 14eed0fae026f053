"""Generator of the decoder of a message in a version.

The generated function reads the message from start to end. Consecutive fixed-size fields, together
with the length that follows them, are read by one `struct` call; structs are inlined as loops, so
that there is no call per field or element. A read past the end raises `struct.error` or
`IndexError`; lengths and counts are compared with the remaining bytes before any allocation.
Messages share the structs of fields that were not received: these may be replaced, not modified.

The result for ``HeartbeatRequest`` version 3 is::

    def decode(buf, end, budget):
        p = 0
        o0 = new(HeartbeatRequest)
        n, = unpack_h(buf, p)
        p += 2
        if n < 0: raise bad_length(n)
        q = p + n
        if q > end: raise too_short(n, end - p)
        o0.group_id = str(buf[p:q], 'utf-8')
        p = q
        ...
"""

from struct import Struct as Layout
from struct import calcsize, unpack_from

from kclient.protocol.fields import ArrayOf, Field, Kind, Struct, Wire, plain_field
from kclient.protocol.memory import element_cost, minimum_size
from kclient.protocol.source import Source
from kclient.protocol.types import (
    MAX_STRING,
    bad_length,
    bad_marker,
    read_tag,
    read_uvarint,
    skip_tags,
    too_expensive,
    too_long,
    too_many,
    too_short,
    wrong_tag_size,
)
from kclient.protocol.versions import VersionRange

_HELPERS = (
    bad_length,
    bad_marker,
    read_tag,
    read_uvarint,
    skip_tags,
    too_expensive,
    too_long,
    too_many,
    too_short,
    unpack_from,
    wrong_tag_size,
)
_ELEMENT = plain_field(Wire.STRING)
_READ_UVARINT = "if n > 127: n, p = read_uvarint(buf, p - 1)"


class DecoderGenerator:
    """Generator of a decoder: ``decode(buf, end, budget) -> message``."""

    def __init__(self, version: int, flexible: VersionRange) -> None:
        self.source = Source()
        self._version = version
        self._flexible = version in flexible
        self._run: list[tuple[str, str, str]] = []
        for helper in _HELPERS:
            self.source.use(helper.__name__, helper)
        self.source.use("new", object.__new__)

    def generate(self, message: type[Struct]) -> Source:
        """Return the complete source for `message`."""
        with self.source.block("def decode(buf, end, budget):"):
            self.source.add("p = 0")
            self._struct(message, 0, "")
            self.source.add("return o0")
        return self.source

    def _struct(self, kind: type[Struct], depth: int, path: str) -> None:
        """Read a struct into ``o<depth>``."""
        add = self.source.add
        add(f"o{depth} = new({self.source.use(kind.__name__, kind)})")
        tagged = []
        for name, field in kind.fields.items():
            self.source.about = path + name
            if self._version not in field.versions:
                add(f"o{depth}.{name} = {self._default(field)}")
            elif field.is_tagged(self._version):
                add(f"o{depth}.{name} = {self._default(field)}")
                tagged.append(field)
            else:
                self._value(field.kind, field, f"o{depth}.{name} = {{}}", depth, path + name)
        self.source.about = path + "tagged fields"
        self._flush()
        if self._flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), depth, path)

    def _default(self, field: Field) -> str:
        value = field.default_value()
        if isinstance(value, Struct):
            # All messages share it: three of them were a third of the time of a fetched partition.
            return self.source.use(f"default_{type(value).__name__}", value)
        return repr(value)

    def _value(self, kind: Kind, field: Field, store: str, depth: int, path: str) -> None:
        """Read one value and store it by `store`, a statement with a placeholder."""
        self.source.about = path
        if isinstance(kind, ArrayOf):
            self._array(kind.element, field, store, depth + 1, path)
        elif not isinstance(kind, Wire):
            self._nested(kind, field, store, depth + 1, path)
        elif kind.layout:
            self._run.append((store.removesuffix(" = {}"), kind.layout, path))
        else:
            self._variable(kind, field, store)

    def _flush(self) -> None:
        """Read the fixed-size fields that were collected."""
        if not self._run:
            return
        targets = ", ".join(target for target, _, _ in self._run)
        layout = "".join(code for _, code, _ in self._run)
        reader = Layout(f">{layout}")
        name = self.source.use(f"unpack_{layout.replace('?', 'z')}", reader.unpack_from)
        note = tuple((path, calcsize(f">{code}")) for _, code, path in self._run)
        self.source.add(f"{targets}{'' if ',' in targets else ','} = {name}(buf, p)", note)
        self.source.add(f"p += {reader.size}")
        self._run.clear()

    def _length(self, prefix: str) -> None:
        """Read a length or count into ``n``, -1 for null."""
        if self._flexible:
            self._flush()
            self.source.add("n = buf[p]")
            self.source.add("p += 1")
            self.source.add(_READ_UVARINT)
            self.source.add("n -= 1")
        else:
            self._run.append(("n", prefix, self.source.about))
            self._flush()

    def _null(self, field: Field, store: str) -> str:
        """Handle negative lengths; return the head of the block for the others."""
        add = self.source.add
        if self._version in field.nullable:
            with self.source.block("if n < 0:"):
                add("if n != -1: raise bad_length(n)")
                add(store.format("None"))
            return "else:"
        add("if n < 0: raise bad_length(n)")
        return ""

    def _variable(self, kind: Wire, field: Field, store: str) -> None:
        self._length("h" if kind is Wire.STRING else "i")
        read = {
            Wire.STRING: "str(buf[p:q], 'utf-8')",
            Wire.BYTES: "bytes(buf[p:q])",
            Wire.RECORDS: "buf[p:q]",
        }[kind]
        with self.source.optional_block(self._null(field, store)):
            self.source.add("q = p + n")
            self.source.add("if q > end: raise too_short(n, end - p)")
            if kind is Wire.STRING and self._flexible:  # elsewhere the length has 16 bits
                self.source.add(f"if n > {MAX_STRING}: raise too_long(n)")
            self.source.add(store.format(read))
            self.source.add("p = q")

    def _nested(self, kind: type[Struct], field: Field, store: str, depth: int, path: str) -> None:
        head = ""
        if self._version in field.nullable:
            self._run.append(("n", "b", path))
            self._flush()
            self.source.add("if n != 1 and n != -1: raise bad_marker(n)")
            with self.source.block("if n < 0:"):
                self.source.add(store.format("None"))
            head = "else:"
        self._flush()
        with self.source.optional_block(head):
            self._struct(kind, depth, path + ".")
            self.source.about = path
            self.source.add(store.format(f"o{depth}"))

    def _array(
        self, element: Wire | type[Struct], field: Field, store: str, depth: int, path: str
    ) -> None:
        self._length("i")
        add = self.source.add
        with self.source.optional_block(self._null(field, store)):
            smallest = minimum_size(element, self._version, flexible=self._flexible)
            add(f"if n * {smallest} > end - p: raise too_many(n, {smallest}, end - p)")
            add(f"budget -= n * {element_cost(element)}")
            add("if budget < 0: raise too_expensive(n, end)")
            if isinstance(element, Wire) and element.layout:
                self._fixed_elements(element, store)
                return
            add(f"a{depth} = []")
            with self.source.block(f"for i{depth} in range(n):"):
                item, place = f"a{depth}.append({{}})", f"{path}[{{i{depth}}}]"
                if isinstance(element, Wire):
                    self._value(element, _ELEMENT, item, depth, place)
                else:
                    self._struct(element, depth, place + ".")
                    add(item.format(f"o{depth}"))
            self.source.about = path
            add(store.format(f"a{depth}"))

    def _fixed_elements(self, element: Wire, store: str) -> None:
        """Read an array of fixed-size primitives by one call, after its size was checked."""
        self.source.add(f"q = p + n * {element.size}")
        values = f"list(unpack_from(f'>{{n}}{element.layout}', buf, p))"
        if element is Wire.UUID:
            values = "[bytes(buf[u:u + 16]) for u in range(p, q, 16)]"
        self.source.add(store.format(values))
        self.source.add("p = q")

    def _tags(self, tagged: list[Field], depth: int, path: str) -> None:
        """Read the tagged fields at the end of a struct; unknown ones are skipped."""
        add = self.source.add
        add("n = buf[p]")
        if not tagged:
            add("p = skip_tags(buf, p) if n else p + 1")
            return
        with self.source.block("if n:"):
            add("n, p = read_uvarint(buf, p)")
            add(f"t{depth} = -1")
            with self.source.block("for _ in range(n):"):
                add(f"t{depth}, e{depth}, p = read_tag(buf, p, t{depth})")
                for position, field in enumerate(tagged):
                    word = "elif" if position else "if"
                    with self.source.block(f"{word} t{depth} == {field.tag}:"):
                        target = f"o{depth}.{field.name} = {{}}"
                        self._value(field.kind, field, target, depth, path + field.name)
                        self._flush()
                with self.source.block("else:"):
                    self.source.about = path + "tagged fields"
                    add(f"p = e{depth}")
                add(f"if p != e{depth}: raise wrong_tag_size(t{depth}, e{depth} - p)")
        with self.source.block("else:"):
            add("p += 1")
