"""`Struct`, the base class of messages and of the structs in them, and its field specifiers.

A class body assigns the result of a specifier to an annotated name::

    class FetchPartition(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32("9+", default=-1, ignorable=True)

The specifiers claim to return the *value's* type so that a type checker holds the annotation
against the wire type; what they really return is a `Field`, which `Struct` takes out of the class.
A class has slots, a keyword constructor, equality and a repr without payloads.

The parameters are those of Kafka's message definitions:

- `versions`: message versions that carry the field;
- `nullable`: versions in which null is allowed;
- `tag`: number of a tagged field (KIP-482); it is then tagged in all its versions;
- `default`: value where the field is absent (zero, empty or false unless given);
- `ignorable`: whether a value that a version cannot carry is dropped instead of refused;
- `map_key`: whether the field identifies its struct within the array (only informative).
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar, dataclass_transform, overload

from kclient.common.files import FileSlice, WirePart
from kclient.protocol.source import Source
from kclient.protocol.types import ZERO_UUID
from kclient.protocol.versions import NO_VERSIONS, VersionRange

T = TypeVar("T")


class Wire(Enum):
    """Primitive wire type: its `struct` format and size; the format is empty if variable."""

    BOOL = ("bool", "?", 1, False)
    INT8 = ("int8", "b", 1, 0)
    INT16 = ("int16", "h", 2, 0)
    UINT16 = ("uint16", "H", 2, 0)
    INT32 = ("int32", "i", 4, 0)
    INT64 = ("int64", "q", 8, 0)
    FLOAT64 = ("float64", "d", 8, 0.0)
    UUID = ("uuid", "16s", 16, ZERO_UUID)
    STRING = ("string", "", 0, "")
    BYTES = ("bytes", "", 0, b"")
    RECORDS = ("records", "", 0, b"")

    def __init__(self, label: str, layout: str, size: int, empty: object) -> None:
        self.label = label
        self.layout = layout
        self.size = size
        self.empty = empty


class ArrayOf(NamedTuple):
    """Array of primitives or of structs."""

    element: "Wire | type[Struct]"


Kind: TypeAlias = "Wire | ArrayOf | type[Struct]"
"""Wire type of a field."""


class _Unset(Enum):
    UNSET = 0


UNSET = _Unset.UNSET
"""Default of an argument for which None is a value."""


class Field(NamedTuple):
    """Field of a message: its name, wire type and versions.

    A tuple, since an import creates hundreds of them.
    """

    kind: Kind
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    default: Any
    ignorable: bool
    map_key: bool
    secret: bool
    name: str = ""

    def named(self, name: str) -> "Field":
        """Return the field with its name."""
        return self._replace(name=name)

    def is_tagged(self, version: int) -> bool:
        """Return whether the field is a tagged field in a version."""
        return self.tag is not None and version in self.versions

    def default_value(self) -> Any:
        """Return a new default."""
        if self.default is not UNSET:
            return self.default
        if isinstance(self.kind, ArrayOf):
            return []
        return self.kind.empty if isinstance(self.kind, Wire) else self.kind()


def _field(  # one row of a message definition
    kind: Kind,
    versions: str,
    *,
    nullable: str | None = None,
    tag: int | None = None,
    default: object = UNSET,
    ignorable: bool = False,
    map_key: bool = False,
    secret: bool = False,
) -> Any:
    return Field(
        kind=kind,
        versions=VersionRange.parse(versions),
        nullable=NO_VERSIONS if nullable is None else VersionRange.parse(nullable),
        tag=tag,
        default=default,
        ignorable=ignorable,
        map_key=map_key,
        secret=secret,
    )


def plain_field(kind: Wire) -> Field:
    """Return a field without a name, never null: the element of an array of primitives."""
    field: Field = _field(kind, "0+")
    return field


def boolean(versions: str = "0+", *, default: bool = False, **options: Any) -> bool:
    """Declare a bool, one byte."""
    field: bool = _field(Wire.BOOL, versions, default=default, **options)
    return field


def int8(versions: str = "0+", **options: Any) -> int:
    """Declare a signed 8-bit integer."""
    field: int = _field(Wire.INT8, versions, **options)
    return field


def int16(versions: str = "0+", **options: Any) -> int:
    """Declare a signed 16-bit integer."""
    field: int = _field(Wire.INT16, versions, **options)
    return field


def uint16(versions: str = "0+", **options: Any) -> int:
    """Declare an unsigned 16-bit integer."""
    field: int = _field(Wire.UINT16, versions, **options)
    return field


def int32(versions: str = "0+", **options: Any) -> int:
    """Declare a signed 32-bit integer."""
    field: int = _field(Wire.INT32, versions, **options)
    return field


def int64(versions: str = "0+", **options: Any) -> int:
    """Declare a signed 64-bit integer."""
    field: int = _field(Wire.INT64, versions, **options)
    return field


def float64(versions: str = "0+", **options: Any) -> float:
    """Declare an IEEE 754 double."""
    field: float = _field(Wire.FLOAT64, versions, **options)
    return field


def uuid(versions: str = "0+", **options: Any) -> bytes:
    """Declare a uuid, 16 bytes; zeros mean none."""
    field: bytes = _field(Wire.UUID, versions, **options)
    return field


@overload
def string(versions: str = ..., *, nullable: None = None, **options: Any) -> str: ...
@overload
def string(versions: str = ..., *, nullable: str, **options: Any) -> str | None: ...
def string(versions: str = "0+", *, nullable: str | None = None, **options: Any) -> str | None:
    """Declare a UTF-8 string."""
    field: str = _field(Wire.STRING, versions, nullable=nullable, **options)
    return field


@overload
def binary(versions: str = ..., *, nullable: None = None, **options: Any) -> bytes: ...
@overload
def binary(versions: str = ..., *, nullable: str, **options: Any) -> bytes | None: ...
def binary(versions: str = "0+", *, nullable: str | None = None, **options: Any) -> bytes | None:
    """Declare opaque bytes; a received value is a copy."""
    field: bytes = _field(Wire.BYTES, versions, nullable=nullable, **options)
    return field


@overload
def record_set(versions: str = ..., *, nullable: None = None) -> WirePart: ...
@overload
def record_set(versions: str = ..., *, nullable: str) -> WirePart | None: ...
def record_set(versions: str = "0+", *, nullable: str | None = None) -> WirePart | None:
    """Declare record batches; a received value is a view into the message, not a copy."""
    default = b"" if nullable is None else None
    field: memoryview = _field(Wire.RECORDS, versions, nullable=nullable, default=default)
    return field


_PRIMITIVES: dict[object, Wire] = {
    boolean: Wire.BOOL,
    int8: Wire.INT8,
    int16: Wire.INT16,
    uint16: Wire.UINT16,
    int32: Wire.INT32,
    int64: Wire.INT64,
    float64: Wire.FLOAT64,
    uuid: Wire.UUID,
    string: Wire.STRING,
    binary: Wire.BYTES,
}


@overload
def array(
    element: Callable[..., T], versions: str = ..., *, nullable: None = None, **options: Any
) -> list[T]: ...
@overload
def array(
    element: Callable[..., T], versions: str = ..., *, nullable: str, **options: Any
) -> list[T] | None: ...
def array(
    element: Callable[..., T],
    versions: str = "0+",
    *,
    nullable: str | None = None,
    **options: Any,
) -> list[T] | None:
    """Declare an array of structs (`array(FetchTopic)`) or of primitives (`array(int32)`)."""
    kind: Any = _PRIMITIVES.get(element, element)
    field: list[T] = _field(ArrayOf(kind), versions, nullable=nullable, **options)
    return field


@overload
def struct(
    kind: type[T], versions: str = ..., *, nullable: None = None, tag: int | None = ...
) -> T: ...
@overload
def struct(
    kind: type[T],
    versions: str = ...,
    *,
    nullable: str,
    default: None,
    tag: int | None = ...,
) -> T | None: ...
def struct(
    kind: Any,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: object = UNSET,
    tag: int | None = None,
) -> Any:
    """Declare a nested struct."""
    return _field(kind, versions, nullable=nullable, tag=tag, default=default)


_SHOWN_BYTES = 32


@dataclass_transform(kw_only_default=True, eq_default=True)
class StructType(type):
    """Metaclass that converts field specifiers into slots, a constructor and a field table."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructType":
        """Create the class; `options` are those of `Message`."""
        own = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key in own:
            del namespace[key]
        namespace["__slots__"] = tuple(own)
        made = super().__new__(cls, name, bases, namespace, **options)
        inherited: dict[str, Field] = getattr(made, "fields", {})
        made.fields = inherited | {key: field.named(key) for key, field in own.items()}
        if own:
            type.__setattr__(made, "__init__", _deferred_constructor(made))
        return made

    fields: dict[str, Field]


def _deferred_constructor(made: StructType) -> Any:
    """Return an ``__init__`` that replaces itself by the generated one when it is first called.

    An import defines far more structs than the program creates, and a constructor takes 0.1 ms.
    """

    def construct(self: Struct, **values: object) -> None:
        generated = _constructor(made.__name__, list(made.fields.values()))
        type.__setattr__(made, "__init__", generated)
        generated(self, **values)

    return construct


def _constructor(class_name: str, fields: list[Field]) -> Any:
    """Generate ``__init__(self, *, field=default, ...)``; mutable defaults are created per call."""
    source = Source()
    source.use("UNSET", UNSET)
    parameters = []
    for field in fields:
        default = "UNSET" if _has_mutable_default(field) else repr(field.default_value())
        parameters.append(f"{field.name}={default}")
    with source.block(f"def __init__(self, *, {', '.join(parameters)}):"):
        for field in fields:
            value = field.name
            if _has_mutable_default(field):
                empty = "[]"
                if isinstance(field.kind, StructType):
                    empty = source.use(field.kind.__name__, field.kind) + "()"
                value = f"{empty} if {field.name} is UNSET else {field.name}"
            source.add(f"self.{field.name} = {value}")
    made = source.compile("__init__", class_name)
    made.__qualname__ = f"{class_name}.__init__"
    return made


def _has_mutable_default(field: Field) -> bool:
    return isinstance(field.kind, ArrayOf | StructType) and field.default is UNSET


class Struct(metaclass=StructType):
    """Group of fields. Instances are mutable, compare by value and are not hashable."""

    fields: ClassVar[dict[str, Field]]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    __hash__ = None  # type: ignore[assignment]  # the usual way to say "mutable, not hashable"

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_show(field, getattr(self, name))}" for name, field in self.fields.items()
        )
        return f"{type(self).__name__}({shown})"


def _show(field: Field, value: object) -> str:
    if value is None:
        return "None"
    if field.secret:
        return "***"
    if isinstance(value, bytes | bytearray | memoryview | FileSlice) and (
        field.kind is Wire.RECORDS or len(value) > _SHOWN_BYTES
    ):
        return f"<{len(value)} bytes>"
    return repr(value)
