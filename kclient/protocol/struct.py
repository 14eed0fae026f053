"""`Struct`: base class of messages and of the structs in them.

A subclass body is a list of annotated fields (see `kclient.protocol.fields`). The class has slots,
a keyword constructor, equality and a repr without payloads.
"""

from typing import Any, ClassVar, dataclass_transform

from kclient.common.files import FileSlice
from kclient.protocol.fields import UNSET, ArrayOf, Field, Wire
from kclient.protocol.source import Source

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
            type.__setattr__(made, "__init__", _constructor(name, list(made.fields.values())))
        return made

    fields: dict[str, Field]


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
