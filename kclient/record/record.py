"""Record of a batch, and summary of a batch's records."""

from collections.abc import Callable
from typing import Any, NamedTuple

Header = tuple[str, bytes | None]
"""Record header: a key, which need not be unique, and a value."""

Deserializer = Callable[[str, list[Header], bytes], Any]
"""Called with topic, headers and data, as in `kclient.serialization`; not called for null."""


IN_USE = "take: got called by a deserializer or finalizer that `take` of the same records runs"


class Record(NamedTuple):
    """Record of a batch (Kafka: Record).

    Attributes:
        offset: Offset.
        timestamp: Milliseconds since the epoch, -1 for none.
        key: Key, or None.
        value: Value, or None: a tombstone on a compacted topic.
        headers: Headers in order.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[Header]


RECORD_NAMES = {
    "checksum": "a consumer verifies the checksum of each batch, see check_crcs",
    "error": "poll() raises errors; each record that it returns is valid",
    "serialized_header_size": "use headers",
}
"""What to use instead of attributes of other clients' records."""


class RecordsSummary(NamedTuple):
    """Summary of a batch's records, for the broker's validation.

    Attributes:
        record_count: Number of records.
        min_timestamp: Smallest timestamp, -1 for an empty batch.
        max_timestamp: Greatest timestamp, -1 for an empty batch.
        offset_of_max_timestamp: Offset of the first record with the greatest timestamp, or -1.
        null_keys: Number of records without a key.
        consecutive: Whether the offset deltas are 0, 1, 2 … without gaps.
    """

    record_count: int
    min_timestamp: int
    max_timestamp: int
    offset_of_max_timestamp: int
    null_keys: int
    consecutive: bool
