"""Codec of record batches of magic 2. Pure: no I/O.

Code that processes single records, or many batches at a time, has two implementations with the same
behaviour: compiled, in ``_speed.pyx``, ``_speed_reading.pyx``, ``_speed_column_builder.pyx``,
``_speed_columns.pyx`` and ``_scan.pyx``, and a readable reference in Python. The compiled one is
used if it was built, unless ``KCLIENT_PURE_PYTHON=1`` is set; `IMPLEMENTATION` names the active
one.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kclient.record.batch_columns import BatchColumns, ScanLimits
from kclient.record.batch_header import (
    LOG_OVERHEAD,
    MAX_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    BatchHeader,
    TimestampType,
    decrement_sequence,
    in_sequence,
    increment_sequence,
    parse_header,
)
from kclient.record.checksum import crc32c
from kclient.record.columns import BinaryColumn, Columns, HeaderColumn, read_headers
from kclient.record.compression import (
    CompressionType,
    check_level,
    codec_library,
    compress,
)
from kclient.record.control_records import ControlRecordType, EndTxnMarker, build_end_txn_batch
from kclient.record.errors import RecordDeserializationError
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES
from kclient.record.producer_id import (
    NO_PRODUCER,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ProducerIdAndEpoch,
)
from kclient.record.record import Deserializer, Header, Record, RecordsSummary
from kclient.record.record_batch import AbstractRecordBatch
from kclient.record.record_encoder import encode_headers
from kclient.record.varints import (
    decode_varint,
    decode_varlong,
    encode_varint,
    size_of_varint,
)

__all__ = [
    "DEFAULT_MAX_RECORD_BYTES",
    "IMPLEMENTATION",
    "LOG_OVERHEAD",
    "MAX_SEQUENCE",
    "NO_PRODUCER",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "RECORD_BATCH_OVERHEAD",
    "BatchColumns",
    "BatchCursor",
    "BatchHeader",
    "BinaryColumn",
    "ColumnBuilder",
    "Columns",
    "CompressionType",
    "ConsumerRecord",
    "ControlRecordType",
    "Deserializer",
    "EndTxnMarker",
    "Header",
    "HeaderColumn",
    "PartitionCursor",
    "ProducerIdAndEpoch",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordColumns",
    "RecordDeserializationError",
    "RecordsSummary",
    "ScanLimits",
    "TimestampType",
    "build_end_txn_batch",
    "check_level",
    "codec_library",
    "compress",
    "crc32c",
    "decode_columns",
    "decode_varint",
    "decode_varlong",
    "decrement_sequence",
    "encode_headers",
    "encode_varint",
    "in_sequence",
    "increment_sequence",
    "iter_records",
    "murmur2",
    "parse_header",
    "read_batches",
    "read_headers",
    "record_size_upper_bound",
    "scan_batches",
    "scan_headers",
    "size_of_varint",
]

_PURE_PYTHON = os.environ.get("KCLIENT_PURE_PYTHON", "") not in {"", "0"}

if TYPE_CHECKING:
    from kclient.record import reference as _columns
    from kclient.record import reference as _implementation
    from kclient.record.reference import batch_scan as _scanner

    IMPLEMENTATION: str
else:
    try:
        if _PURE_PYTHON:
            raise ImportError
        from kclient.record import _scan as _scanner
        from kclient.record import _speed as _implementation
        from kclient.record import _speed_columns as _columns

        IMPLEMENTATION = "compiled"
    except ImportError:  # not to be used, or built without a compiler
        if not _PURE_PYTHON:
            from kclient.record.shadowed_install import warn_of_shadowed_install

            warn_of_shadowed_install()
        from kclient.record import reference as _columns
        from kclient.record import reference as _implementation
        from kclient.record.reference import batch_scan as _scanner

        IMPLEMENTATION = "python"

BatchCursor = _implementation.BatchCursor
ColumnBuilder = _implementation.ColumnBuilder
ConsumerRecord = _implementation.ConsumerRecord
PartitionCursor = _implementation.PartitionCursor
RecordBatch = _implementation.RecordBatch
RecordBatchBuilder = _implementation.RecordBatchBuilder
RecordColumns = _columns.RecordColumns
decode_columns = _implementation.decode_columns
murmur2 = _implementation.murmur2
read_batches = _implementation.read_batches
record_size_upper_bound = _implementation.record_size_upper_bound
scan_batches = _scanner.scan_batches
scan_headers = _scanner.scan_headers

_SLICE = 512
_SLICE_BYTES = 1024 * 1024


def iter_records(
    batch: AbstractRecordBatch, max_record_bytes: int = DEFAULT_MAX_RECORD_BYTES
) -> Iterator[ConsumerRecord]:
    """Yield a batch's records without holding all of them in memory, but about `_SLICE_BYTES`.

    Raises:
        CorruptRecordError: As `RecordBatch.records`, after the records before the corrupt one.
        CompressionError: As `RecordBatch.records`.
    """
    cursor = BatchCursor(batch, "", 0, max_record_bytes=max_record_bytes)
    count = 1
    while taken := cursor.take(count):
        yield from taken
        size = sum(each.serialized_key_size + each.serialized_value_size for each in taken)
        count = min(2 * count, _SLICE) if size < _SLICE_BYTES else max(1, count // 2)
