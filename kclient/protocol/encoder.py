"""Generator of the encoder of a message in a version.

The generated function collects small pieces and joins them at the end. As in the decoder, a run of
fixed-size fields is packed by one `struct` call and structs are inlined as loops. Tagged fields
are written only where they differ from their default. Fields that the version does not carry are
checked first: a value that would be lost is refused unless the field is ignorable.

For ``HeartbeatRequest`` version 3 it comes out as::

    def encode(o0):
        parts = []
        small = []
        w = small.append
        v = o0.group_id.encode()
        w(pack_h(len(v)))
        w(v)
        ...
        parts.append(b"".join(small))
        return parts
"""

from struct import Struct as Layout
from struct import pack

from kclient.protocol.fields import ArrayOf, Field, Kind, Struct, Wire, plain_field
from kclient.protocol.source import Source
from kclient.protocol.types import MAX_STRING, SMALL_UVARINTS, encode_uvarint, put_records
from kclient.protocol.versions import VersionRange

_ELEMENT = plain_field(Wire.STRING)


class FieldNotCarriedError(Exception):
    """A field was set that the version does not have; `explain` determines which one."""


class WrongLengthError(Exception):
    """A uuid or a string has an invalid length; `explain` determines which one."""


class EncoderGenerator:
    """Generator of an encoder: ``encode(message) -> parts``."""

    def __init__(self, version: int, flexible: VersionRange) -> None:
        self.source = Source()
        self._version = version
        self._flexible = version in flexible
        self._run: list[tuple[str, str]] = []
        self._write = "w"
        for helper in (encode_uvarint, pack, put_records, FieldNotCarriedError, WrongLengthError):
            self.source.use(helper.__name__, helper)
        self.source.use("SMALL", SMALL_UVARINTS)

    def generate(self, message: type[Struct]) -> Source:
        """Return the complete source for `message`."""
        add = self.source.add
        with self.source.block("def encode(o0):"):
            add("parts = []")
            add("small = []")
            add("w = small.append")
            self._struct(message, 0)
            add("if small or not parts: parts.append(b''.join(small))")
            add("return parts")
        return self.source

    def _struct(self, kind: type[Struct], depth: int) -> None:
        """Write the struct in ``o<depth>``."""
        self._refuse_lost_fields(kind, depth)
        tagged = []
        for name, field in kind.fields.items():
            if self._version not in field.versions:
                continue
            if field.is_tagged(self._version):
                tagged.append(field)
            else:
                self._value(field.kind, field, f"o{depth}.{name}", depth)
        self._flush()
        if self._flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), depth)

    def _refuse_lost_fields(self, kind: type[Struct], depth: int) -> None:
        for name, field in kind.fields.items():
            if self._version not in field.versions and not field.ignorable:
                differs = _differs(field, f"o{depth}.{name}")
                self.source.add(f"if {differs}: raise FieldNotCarriedError")

    def _value(self, kind: Kind, field: Field, value: str, depth: int) -> None:
        """Write one value, given as an expression."""
        if isinstance(kind, ArrayOf):
            self._array(kind.element, field, value, depth + 1)
        elif not isinstance(kind, Wire):
            self._nested(kind, field, value, depth + 1)
        elif kind.layout:
            if kind is Wire.UUID:
                self.source.add(f"if len({value}) != 16: raise WrongLengthError")
            self._run.append((value, kind.layout))
        else:
            self._variable(kind, field, value)

    def _flush(self) -> None:
        """Pack the fixed-size values that were collected."""
        if not self._run:
            return
        layout = "".join(code for _, code in self._run)
        name = self.source.use(f"pack_{layout.replace('?', 'z')}", Layout(f">{layout}").pack)
        values = ", ".join(value for value, _ in self._run)
        self.source.add(f"{self._write}({name}({values}))")
        self._run.clear()

    def _length(self, length: str, prefix: str) -> None:
        """Write a length or count, an expression that is -1 for null."""
        if not self._flexible:
            self._run.append((length, prefix))
            self._flush()
            return
        self._flush()
        self.source.add(f"n = {length} + 1")
        self.source.add(f"{self._write}(SMALL[n] if n < 128 else encode_uvarint(n))")

    def _variable(self, kind: Wire, field: Field, value: str) -> None:
        nullable = self._version in field.nullable
        add = self.source.add
        if kind is Wire.STRING:
            add(f"v = {value}")
            add("s = b'' if v is None else v.encode()" if nullable else "s = v.encode()")
            if self._flexible:
                add(f"if len(s) > {MAX_STRING}: raise WrongLengthError")
            self._length("(-1 if v is None else len(s))" if nullable else "len(s)", "h")
            add(f"{self._write}(s)")
            return
        add(f"v = {value}")
        self._length("(-1 if v is None else len(v))" if nullable else "len(v)", "i")
        if kind is Wire.RECORDS:
            add("put_records(v, small, parts)")
        else:
            add(f"if v: {self._write}(v)" if nullable else f"{self._write}(v)")

    def _nested(self, kind: type[Struct], field: Field, value: str, depth: int) -> None:
        self._flush()
        self.source.add(f"o{depth} = {value}")
        head = ""
        if self._version in field.nullable:
            self.source.add(f"{self._write}(b'\\xff' if o{depth} is None else b'\\x01')")
            head = f"if o{depth} is not None:"
        with self.source.optional_block(head):
            self._struct(kind, depth)

    def _array(self, element: Wire | type[Struct], field: Field, value: str, depth: int) -> None:
        nullable = self._version in field.nullable
        add = self.source.add
        add(f"a{depth} = {value}")
        length = f"len(a{depth})"
        self._length(f"(-1 if a{depth} is None else {length})" if nullable else length, "i")
        if isinstance(element, Wire) and element.layout and element is not Wire.UUID:
            packed = f"pack(f'>{{len(a{depth})}}{element.layout}', *a{depth})"
            add(f"if a{depth}: {self._write}({packed})")
            return
        items = f"a{depth} or ()" if nullable else f"a{depth}"
        with self.source.block(f"for o{depth} in {items}:"):
            if isinstance(element, Wire):
                self._value(element, _ELEMENT, f"o{depth}", depth)
                self._flush()
            else:
                self._struct(element, depth)

    def _tags(self, tagged: list[Field], depth: int) -> None:
        """Write the tagged fields that differ from their default, lowest tag first."""
        add = self.source.add
        if not tagged:
            add(f"{self._write}(b'\\x00')")
            return
        outer, self._write = self._write, f"w{depth}"
        add(f"t{depth} = []")
        for field in tagged:
            with self.source.block(f"if {_differs(field, f'o{depth}.{field.name}')}:"):
                add(f"b{depth} = []")
                add(f"w{depth} = b{depth}.append")
                value = f"o{depth}.{field.name}"
                self._value(field.kind, field, value, depth)
                self._flush()
                add(f"b{depth} = b''.join(b{depth})")
                head = f"encode_uvarint({field.tag}) + encode_uvarint(len(b{depth}))"
                add(f"t{depth}.append({head} + b{depth})")
        self._write = outer
        joined = f"encode_uvarint(len(t{depth})) + b''.join(t{depth})"
        add(f"{outer}({joined} if t{depth} else SMALL[0])")  # mostly there are none


def _differs(field: Field, value: str) -> str:
    """Return an expression that is true if a field does not have its default."""
    if field.default is None:
        return f"{value} is not None"
    if isinstance(field.kind, ArrayOf):
        return f"{value} != []"
    if isinstance(field.kind, Wire):
        return f"{value} != {field.default_value()!r}"
    return _struct_differs(field.kind, value)


def _struct_differs(kind: type[Struct], value: str) -> str:
    parts = [_differs(field, f"{value}.{field.name}") for field in kind.fields.values()]
    return f"({' or '.join(parts)})"
