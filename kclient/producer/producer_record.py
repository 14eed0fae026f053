"""Record as passed to `Producer.send`."""

from collections.abc import Sequence
from typing import Any, NamedTuple


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
