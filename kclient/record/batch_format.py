"""Layout of a record batch of magic 2 (Kafka: DefaultRecordBatch).

A batch has a header of 61 bytes, followed by the records, which are compressed together if the
attributes name a codec. The checksum covers the batch from the attributes on, so that a broker can
write base offset and leader epoch without updating it.
"""

import struct

HEADER = struct.Struct(">qiibIhiqqqhii")
"""base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp,
max timestamp, producer id, producer epoch, base sequence, record count."""

OFFSET_AND_LENGTH = struct.Struct(">qi")
MAGIC_BYTE = struct.Struct(">b")
CRC = struct.Struct(">I")
LEADER_EPOCH = struct.Struct(">i")
BASE_OFFSET = struct.Struct(">q")
CRC_TO_MAX_TIMESTAMP = struct.Struct(">Ihiqq")
PRODUCER_STATE = struct.Struct(">qhi")

LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
PRODUCER_STATE_AT = 43

RECORD_BATCH_OVERHEAD = HEADER.size
"""Size of the header."""

LOG_OVERHEAD = 12
"""Size of the fields that the length field does not count: base offset and length."""

SMALLEST_LEGACY_LENGTH = 14
"""Minimum of the length field for any magic (Kafka: LegacyRecord.RECORD_OVERHEAD_V0)."""

MAGIC = 2

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

MAX_RECORD_OVERHEAD = 21
"""Upper bound of a record's size without key, value and headers (Kafka: DefaultRecord)."""

MIN_RECORD_SIZE = 7
"""Minimum size of a record: seven fields of one byte each."""

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
