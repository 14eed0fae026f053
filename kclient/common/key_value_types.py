"""Type variables of what holds or returns keys and values of records."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Known to every type checker; the package need not be installed. Without arguments the types
    # are unknown, not an error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_co = TypeVarWithDefault("K_co", covariant=True, default=Any)
    V_co = TypeVarWithDefault("V_co", covariant=True, default=Any)
    # What a deserializer returns; without one, bytes stay bytes.
    DeserializedKey = TypeVarWithDefault("DeserializedKey", default=bytes)
    DeserializedValue = TypeVarWithDefault("DeserializedValue", default=bytes)
else:
    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)
    DeserializedKey = TypeVar("DeserializedKey")
    DeserializedValue = TypeVar("DeserializedValue")
