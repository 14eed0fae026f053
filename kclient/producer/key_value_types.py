"""Type variables of keys and values."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    # Every type checker knows it; the package need not be installed. Without type arguments the
    # types are unknown, which is no error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_contra = TypeVarWithDefault("K_contra", contravariant=True, default=Any)
    V_contra = TypeVarWithDefault("V_contra", contravariant=True, default=Any)
else:
    K_contra = TypeVar("K_contra", contravariant=True)
    V_contra = TypeVar("V_contra", contravariant=True)
