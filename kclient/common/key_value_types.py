"""Type variables for keys and values of records."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Type checkers include the package; it need not be installed. Without type arguments, the
    # types are unknown instead of an error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_co = TypeVarWithDefault("K_co", covariant=True, default=Any)
    V_co = TypeVarWithDefault("V_co", covariant=True, default=Any)
    # Result of a deserializer; without one, bytes.
    DeserializedKey = TypeVarWithDefault("DeserializedKey", default=bytes)
    DeserializedValue = TypeVarWithDefault("DeserializedValue", default=bytes)
else:
    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
    DeserializedKey = TypeVar("DeserializedKey")
    DeserializedValue = TypeVar("DeserializedValue")
