"""Type variables of what takes keys and values of records."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Known to every type checker; the package need not be installed. Without arguments the types
    # are unknown, not an error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_contra = TypeVarWithDefault("K_contra", contravariant=True, default=Any)
    V_contra = TypeVarWithDefault("V_contra", contravariant=True, default=Any)
else:
    K_contra = TypeVar("K_contra", contravariant=True)
    V_contra = TypeVar("V_contra", contravariant=True)
