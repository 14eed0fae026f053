"""Reference implementation of the record code in Python, equivalent to the compiled modules."""

from kclient.record.record_encoder import record_size_upper_bound
from kclient.record.reference.batch_cursor import BatchCursor, decode_columns
from kclient.record.reference.batch_scan import scan_batches, scan_headers
from kclient.record.reference.column_builder import ColumnBuilder
from kclient.record.reference.consumer_record import ConsumerRecord
from kclient.record.reference.murmur2 import murmur2
from kclient.record.reference.partition_cursor import PartitionCursor
from kclient.record.reference.record_batch import RecordBatch, read_batches
from kclient.record.reference.record_batch_builder import RecordBatchBuilder
from kclient.record.reference.record_columns import RecordColumns

__all__ = [
    "BatchCursor",
    "ColumnBuilder",
    "ConsumerRecord",
    "PartitionCursor",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordColumns",
    "decode_columns",
    "murmur2",
    "read_batches",
    "record_size_upper_bound",
    "scan_batches",
    "scan_headers",
]
