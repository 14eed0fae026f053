"""Record as passed to `Producer.send`, and the type variables of its key and value."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    # Every type checker knows it; the package need not be installed. Without type arguments the
    # types are unknown, which is no error under --strict.
    from typing_extensions import TypeVar as TypeVarWithDefault

    K_contra = TypeVarWithDefault("K_contra", contravariant=True, default=Any)
    V_contra = TypeVarWithDefault("V_contra", contravariant=True, default=Any)
else:
    K_contra = TypeVar("K_contra", contravariant=True)
    V_contra = TypeVar("V_contra", contravariant=True)


class ProducerRecord(NamedTuple):
    """Arguments of one `Producer.send`, before serialization (Kafka: ProducerRecord).

    Attributes:
        topic: Topic name.
        value: Value.
        key: Key.
        headers: Pairs of name and value.
        partition: Partition, None to let the partitioner choose.
        timestamp_ms: Milliseconds since the epoch, None for the current time.
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
