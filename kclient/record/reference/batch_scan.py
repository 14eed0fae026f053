"""Goes through many batches at a time, for those who want to know of each only its fixed fields."""

from array import array

from kclient.common.files import WireBytes
from kclient.record.batch_columns import BatchColumns, ScanLimits
from kclient.record.batch_format import (
    ATTRIBUTES_AT,
    CONTROL_FLAG,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    RECORD_BATCH_OVERHEAD,
)
from kclient.record.checksum import crc32c

_COLUMNS = 13
_NO_LIMITS = ScanLimits()

Row = tuple[int, ...]
"""A batch's values in the order of the columns."""


def scan_batches(
    buffer: WireBytes, position: int = 0, limits: ScanLimits = _NO_LIMITS
) -> BatchColumns:
    """Return the whole and sound batches at the start of a buffer, checksums checked.

    Args:
        buffer: Memory that begins with a batch.
        position: What to count the batches' positions from.
        limits: What they have to keep to.
    """
    view = memoryview(buffer)
    return _scan(view, position, len(view), limits, verify=True)


def scan_headers(
    buffer: WireBytes, position: int, end: int, limits: ScanLimits = _NO_LIMITS
) -> BatchColumns:
    """Return the batches that begin in a buffer, as their headers tell of them.

    Args:
        buffer: Memory that begins with a batch; the last one may reach out of it.
        position: What to count the batches' positions from.
        end: Position behind which there is nothing.
        limits: What they have to keep to.
    """
    return _scan(memoryview(buffer), position, end - position, limits, verify=False)


def _scan(
    view: memoryview, position: int, length: int, limits: ScanLimits, *, verify: bool
) -> BatchColumns:
    rows: list[Row] = []
    at, wanted, problem = 0, RECORD_BATCH_OVERHEAD, None
    while at + RECORD_BATCH_OVERHEAD <= min(len(view), length):
        row = _row(view, at, position)
        size = row[1]
        problem = impossible(view, at, limits)
        if problem is None and size > length - at:
            wanted = size
            break
        problem = problem or misplaced(view, at, limits)
        if verify:
            problem = problem or unsound(view[at : at + size])
        if problem is not None:
            break
        rows.append(row)
        limits = limits._replace(next_offset=row[3] + 1)
        at += size
    columns = [array("q", column) for column in zip(*rows, strict=True)]
    controls = array("q", (number for number, row in enumerate(rows) if row[6] & CONTROL_FLAG))
    columns = columns or [array("q") for _ in range(_COLUMNS)]
    return BatchColumns._make([*columns, controls, position + at, wanted, problem])


def _row(view: memoryview, at: int, position: int) -> Row:
    base_offset, length, epoch, _, crc, attributes, delta, *rest = HEADER.unpack_from(view, at)
    size, last_offset = length + LOG_OVERHEAD, base_offset + delta
    return (position + at, size, base_offset, last_offset, epoch, crc, attributes, *rest)


def impossible(view: memoryview, at: int, limits: ScanLimits) -> str | None:
    """Return why what stands at a place is no batch at all, or None."""
    base_offset, length, _, magic, *_ = HEADER.unpack_from(view, at)
    if not RECORD_BATCH_OVERHEAD <= length + LOG_OVERHEAD <= limits.max_batch_size:
        return f"batch at offset {base_offset}: got a size of {length + LOG_OVERHEAD} bytes"
    if magic != MAGIC:
        return f"batch at offset {base_offset}: got magic {magic}, expected {MAGIC}"
    return None


def misplaced(view: memoryview, at: int, limits: ScanLimits) -> str | None:
    """Return why a batch does not belong where it stands, or None.

    Offsets are outside of the checksum; only their order tells of damage.
    """
    base_offset, _, _, _, _, _, delta, *_ = HEADER.unpack_from(view, at)
    if delta < 0 or base_offset < limits.next_offset or base_offset + delta > limits.last_offset:
        return (
            f"batch of offsets {base_offset} to {base_offset + delta}: out of order, expected "
            f"{limits.next_offset} to {limits.last_offset}"
        )
    return None


def unsound(batch: memoryview) -> str | None:
    """Return why a whole batch cannot be what was written, or None."""
    base_offset, _, _, _, crc, _, delta, *_, count = HEADER.unpack_from(batch)
    if not 0 <= count <= delta + 1:
        return f"batch at offset {base_offset}: it claims {count} records in {delta + 1} offsets"
    computed = crc32c(batch[ATTRIBUTES_AT:])
    if crc != computed:
        return f"batch at offset {base_offset}: got checksum {crc:#010x}, expected {computed:#010x}"
    return None
