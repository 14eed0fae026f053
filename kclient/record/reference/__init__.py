"""Reference implementation of the record code in Python, equivalent to the compiled modules."""

from kclient.record.reference.batch_cursor import BatchCursor, decode_columns
from kclient.record.reference.batch_scan import scan_batches, scan_headers
from kclient.record.reference.column_builder import ColumnBuilder
from kclient.record.reference.consumer_record import ConsumerRecord
from kclient.record.reference.murmur2 import murmur2
from kclient.record.reference.record_batch import RecordBatch, patch_for_append, read_batches
from kclient.record.reference.record_batch_builder import RecordBatchBuilder
from kclient.record.reference.record_columns import RecordColumns
from kclient.record.reference.record_encoder import record_size_upper_bound
from kclient.record.reference.varints import (
    decode_varint,
    decode_varlong,
    encode_varint,
    size_of_varint,
)

__all__ = [
    "BatchCursor",
    "ColumnBuilder",
    "ConsumerRecord",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordColumns",
    "decode_columns",
    "decode_varint",
    "decode_varlong",
    "encode_varint",
    "murmur2",
    "patch_for_append",
    "read_batches",
    "record_size_upper_bound",
    "scan_batches",
    "scan_headers",
    "size_of_varint",
]
