"""Scan of the headers of many batches at a time."""

from array import array

from kclient.common.files import WireBytes
from kclient.record.batch_columns import (
    BatchColumns,
    ScanLimits,
    content_problem,
    framing_problem,
    offset_problem,
)
from kclient.record.batch_header import CONTROL_FLAG, HEADER, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD

_COLUMNS = 13
_NO_LIMITS = ScanLimits()

Row = tuple[int, ...]
"""Values of a batch in the order of the columns."""


def scan_batches(
    buffer: WireBytes, position: int = 0, limits: ScanLimits = _NO_LIMITS
) -> BatchColumns:
    """Return the headers of the valid batches at the start of a buffer; checksums are verified.

    Args:
        buffer: Memory that starts with a batch.
        position: Position of the buffer's first byte in the file.
        limits: Limits of the batches.
    """
    view = memoryview(buffer)
    return _scan(view, position, len(view), limits, verify=True)


def scan_headers(
    buffer: WireBytes, position: int, end: int, limits: ScanLimits = _NO_LIMITS
) -> BatchColumns:
    """Return the headers of the batches that start in a buffer; checksums are not verified.

    Args:
        buffer: Memory that starts with a batch; the last one may extend beyond it.
        position: Position of the buffer's first byte in the file.
        end: Position of the end of the file.
        limits: Limits of the batches.
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
        problem = framing_problem(view, at, limits)
        if problem is None and size > length - at:
            wanted = size
            break
        problem = problem or offset_problem(view, at, limits)
        if verify:
            problem = problem or content_problem(view[at : at + size])
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
