"""The layout of a record batch of magic 2 (Kafka: DefaultRecordBatch).

A batch is 61 bytes of header, then the records, compressed as one piece where the attributes name a
codec. The checksum covers everything from the attributes on, so a broker may write the base offset
and the leader epoch without computing it again.
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
"""Bytes of a batch before its first record."""

LOG_OVERHEAD = 12
"""Bytes of a batch that its own length field does not count: base offset and length."""

SMALLEST_LEGACY_LENGTH = 14
"""A length field below this is no batch of any magic (Kafka: LegacyRecord.RECORD_OVERHEAD_V0)."""

MAGIC = 2

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

MAX_RECORD_OVERHEAD = 21
"""Upper bound of a record's bytes besides key, value and headers (Kafka: DefaultRecord)."""

MIN_RECORD_SIZE = 7
"""The smallest record: seven fields of one byte each."""

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
