# cython: language_level=3, wraparound=False, embedsignature=True
"""Compiled record code with the behaviour of `kclient.record.reference`, which documents it.

Every read is bounds-checked against the end of the record or of the data; a received length is used
only after it was checked against the remaining data.
"""

from types import GenericAlias
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy

from kclient.common.broker_errors import CorruptRecordError, RecordTooLargeError
from kclient.common.converters import DataOnly
from kclient.common.errors import IllegalStateError, InvalidArgumentError, InvalidTypeError
from kclient.common.types import TopicPartition
from kclient.record.batch_header import batch_attributes
from kclient.record.checksum import crc32c
from kclient.record.columns import BinaryColumn, Columns
from kclient.record.compression import DEFAULT_MAX_DECOMPRESSED
from kclient.record.compression import CompressionType, compress
from kclient.record.errors import RecordDeserializationError
from kclient.record.record import Record, RecordsSummary
from kclient.record.record_batch import AbstractRecordBatch, read_batches as read_batches_of_kind
from kclient.record import record_encoder
from kclient.record.sealing import restamp_batch
from kclient.record.batch_header import TimestampType

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void *)

cdef enum:
    OVERHEAD = 61
    LOG_OVERHEAD = 12
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    COMPRESSION_MASK = 7
    MAGIC = 2
    MIN_RECORD_SIZE = 7
    MAX_RECORD_OVERHEAD = 21
    MAX_LENGTHS = 10
    DEFAULT_MAX_BYTES = 1 << 30
    VARINT_BYTES = 5
    VARLONG_BYTES = 10

cdef bytes NO_HEADERS = b"\x00"
cdef object CREATE_TIME = TimestampType.CREATE_TIME

# ---- integers ----------------------------------------------------------------------------------

cdef bint take_long_varint(Place *at, Place end, int max_bytes, int64_t *out) noexcept nogil:
    cdef Place start = at[0]
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int i
    for i in range(max_bytes):
        if start + i >= end:
            return False
        byte = start[i]
        value |= <uint64_t>(byte & 0x7F) << (7 * i)
        if byte < 0x80:
            if (max_bytes == VARINT_BYTES and value >> 32) or (i == 9 and byte > 1):
                return False
            out[0] = <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
            at[0] = start + i + 1
            return True
    return False

cdef inline bint take_varint(Place *at, Place end, int max_bytes, int64_t *out) noexcept nogil:
    """Read an integer and advance `at`; False if it is truncated or too long."""
    cdef uint8_t byte
    if at[0] < end:
        byte = at[0][0]
        if byte < 0x80:
            out[0] = <int64_t>(byte >> 1) ^ -<int64_t>(byte & 1)
            at[0] += 1
            return True
    return take_long_varint(at, end, max_bytes, out)

cdef inline int64_t as_int64(object value, str what, int64_t least) except -2:
    cdef int overflow = 0
    cdef int64_t number
    if not isinstance(value, int):
        raise InvalidTypeError(f"{what}: got {type(value).__name__}, expected int")
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < least:
        raise InvalidArgumentError(f"{what}: got {value}, expected {least} to 2**63 - 1")
    return number

cdef int64_t as_timestamp(object value) except -2:
    return as_int64(value, "timestamp_ms", -1)

cdef int32_t murmur2_of(Blob data) noexcept nogil:
    cdef Place at = data.at
    cdef int64_t length = data.size
    cdef uint32_t m = 0x5BD1E995
    cdef uint32_t value = <uint32_t>0x9747B28C ^ <uint32_t>length
    cdef uint32_t word
    while length >= 4:
        word = at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)
        word *= m
        word = (word ^ (word >> 24)) * m
        value = (value * m) ^ word
        at += 4
        length -= 4
    if length == 3:
        value ^= <uint32_t>at[2] << 16
    if length >= 2:
        value ^= <uint32_t>at[1] << 8
    if length >= 1:
        value = (value ^ at[0]) * m
    value = (value ^ (value >> 13)) * m
    return <int32_t>(value ^ (value >> 15))

cpdef int32_t murmur2(object data) except? -1:
    """Return Kafka's 32-bit MurmurHash2 of `data`, signed (Kafka: Utils.murmur2)."""
    cdef bytes copy = data if PyBytes_Check(data) else bytes(data)
    return murmur2_of(blob_of(copy))

# ---- writing -----------------------------------------------------------------------------------

cdef inline uint8_t *put16(uint8_t *at, uint16_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 8)
    at[1] = <uint8_t>value
    return at + 2

cdef inline uint8_t *put32(uint8_t *at, uint32_t value) noexcept nogil:
    return put16(put16(at, <uint16_t>(value >> 16)), <uint16_t>value)

cdef inline uint8_t *put64(uint8_t *at, uint64_t value) noexcept nogil:
    return put32(put32(at, <uint32_t>(value >> 32)), <uint32_t>value)

cdef inline object as_bytes(object data, str what):
    if data is None or PyBytes_Check(data):
        return data
    return record_encoder.as_bytes(data, what)

cdef inline bytes pack_headers(object headers):
    return record_encoder.encode_headers(headers) if headers else NO_HEADERS

cdef inline Blob blob_of(object data) noexcept:
    cdef Blob blob = Blob(NULL, -1)
    if data is not None:
        blob.at = <Place>PyBytes_AS_STRING(data)
        blob.size = PyBytes_GET_SIZE(data)
    return blob

def record_size_upper_bound(key, value, headers=None):
    """Return an upper bound of the size of a record, without the batch header of 61 bytes."""
    cdef bytes tail = pack_headers(headers)
    cdef Blob key_blob = blob_of(as_bytes(key, "key"))
    cdef Blob value_blob = blob_of(as_bytes(value, "value"))
    return (
        MAX_RECORD_OVERHEAD + MAX_LENGTHS + PyBytes_GET_SIZE(tail)
        + max(key_blob.size, 0) + max(value_blob.size, 0)
    )


cdef class RecordBatchBuilder:
    """Builds a batch in a buffer, record by record (Kafka: MemoryRecordsBuilder)."""

    def __cinit__(self, buffer, *, base_offset=0):
        if memoryview(buffer).readonly:
            raise InvalidArgumentError("buffer: got read-only memory, expected a bytearray")
        self.base_offset = as_int64(base_offset, "base_offset", 0)
        self._write_to(buffer)
        self._end = OVERHEAD
        self._last_delta = self.first_timestamp = self.max_timestamp = -1

    cdef int _write_to(self, object buffer) except -1:
        self._view = memoryview(buffer).cast("B")
        self._memory = memory_of(self._view)
        self.buffer = buffer
        return 0

    @property
    def size_in_bytes(self):
        """Size of the batch; before it is sealed, without compression."""
        return self._end if self._sealed is None else len(self._sealed)

    @property
    def next_offset(self):
        """Offset after the last record."""
        return self.base_offset + self._last_delta + 1

    @property
    def is_sealed(self):
        """Whether `seal` was called; a sealed batch accepts no records."""
        return self._sealed is not None

    def append(self, timestamp_ms, key, value, headers=None):
        """Append a record; return its index, or -1 if it does not fit or the batch is sealed."""
        return self.append_next(as_timestamp(timestamp_ms), key, value, headers)

    cdef int64_t append_next(
        self, int64_t timestamp, object key, object value, object headers
    ) except -2:
        cdef bytes tail = pack_headers(headers)
        key = as_bytes(key, "key")
        value = as_bytes(value, "value")
        return self._append(
            self._last_delta + 1, timestamp, blob_of(key), blob_of(value), blob_of(tail)
        )

    def append_with_offset(self, offset, timestamp_ms, key, value, headers=None):
        """Append a record at an offset, which may leave a gap; otherwise as `append`."""
        delta = offset - self.base_offset
        if not self._last_delta < delta <= INT32_MAX:
            raise InvalidArgumentError(
                f"offset: got {offset}, expected {self.next_offset} or later, "
                f"within 2**31 of {self.base_offset}"
            )
        return self._append_objects(delta, timestamp_ms, key, value, headers)

    cdef int64_t _append_objects(
        self, int64_t delta, object timestamp_ms, object key, object value, object headers
    ) except -2:
        cdef int64_t timestamp = as_timestamp(timestamp_ms)
        cdef bytes tail = pack_headers(headers)
        key = as_bytes(key, "key")
        value = as_bytes(value, "value")
        return self._append(delta, timestamp, blob_of(key), blob_of(value), blob_of(tail))

    def append_many(self, timestamps_ms, keys, values, start=0, headers=None):
        """Append records from index `start` on, as many as fit; return their number."""
        record_encoder.check_rows(timestamps_ms, keys, values, start)
        cdef bytes packed = pack_headers(headers)
        cdef Blob tail = blob_of(packed)
        cdef bint one_timestamp = isinstance(timestamps_ms, int)
        cdef int64_t timestamp = as_timestamp(timestamps_ms) if one_timestamp else 0
        cdef Py_ssize_t first = start
        cdef Py_ssize_t row = first
        cdef object value, key = None
        cdef int64_t delta
        before = self._mark()
        try:
            while row < len(values):
                value = as_bytes(values[row], "value")
                if keys is not None:
                    key = as_bytes(keys[row], "key")
                if not one_timestamp:
                    timestamp = as_timestamp(timestamps_ms[row])
                delta = self._last_delta + 1
                if self._append(delta, timestamp, blob_of(key), blob_of(value), tail) < 0:
                    break
                row += 1
        except BaseException:
            self._restore(before)
            raise
        return row - first

    def append_columns(self, columns, rows=None, start=0):
        """Append rows of columns, as many as fit; return their number."""
        before = self._mark()
        try:
            return columns.append_to(self, rows, start)
        except BaseException:
            self._restore(before)
            raise

    def move_to(self, buffer):
        """Continue in a larger buffer; the previous one is no longer used."""
        before = self._view  # keeps the memory until it is copied
        cdef Memory source = self._memory
        self._write_to(buffer)
        memcpy(self._memory.at, source.at, min(self._end, self._memory.size))

    cdef tuple _mark(self):
        return (self._end, self.record_count, self._last_delta, self.first_timestamp,
                self.max_timestamp, self.largest_record)

    cdef _restore(self, tuple mark):
        (self._end, self.record_count, self._last_delta, self.first_timestamp,
         self.max_timestamp, self.largest_record) = mark

    cdef int64_t _append(
        self, int64_t delta, int64_t timestamp, Blob key, Blob value, Blob tail
    ) except -2:
        cdef int64_t timestamp_delta, body, end
        cdef uint8_t *at
        if self._sealed is not None or delta > INT32_MAX:
            return -1
        timestamp_delta = 0
        if self.record_count:
            if self.first_timestamp < 0 and timestamp == INT64_MAX:
                return -1  # the delta has more than 64 bits
            timestamp_delta = timestamp - self.first_timestamp
        body = (
            1 + varint_size(timestamp_delta) + varint_size(delta) + blob_size(key)
            + blob_size(value) + tail.size
        )
        if body > INT32_MAX:
            raise RecordTooLargeError(f"record: got {body} bytes, expected less than 2 GiB")
        end = self._end + varint_size(body) + body
        if end > self._memory.size:
            if self.record_count:
                return -1
            self._write_to(bytearray(end))
        at = put_varint(self._memory.at + self._end, body)
        at[0] = 0  # attributes
        at = put_varint(at + 1, timestamp_delta)
        at = put_varint(at, delta)
        at = put_blob(at, key)
        at = put_blob(at, value)
        memcpy(at, tail.at, tail.size)
        if not self.record_count:
            self.first_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if end - self._end > self.largest_record:
            self.largest_record = end - self._end
        self._end = end
        self._last_delta = delta
        self.record_count += 1
        return self.record_count - 1

    def seal(
        self, producer_id=-1, producer_epoch=-1, base_sequence=-1, *, transactional=False,
        control=False, compression=CompressionType.NONE, level=None,
        timestamp_type=CREATE_TIME, partition_leader_epoch=-1,
    ):
        """Close the batch and return its final bytes."""
        if self._sealed is not None:
            raise IllegalStateError("seal: the batch is sealed; use restamp for new producer state")
        if not self.record_count:
            raise IllegalStateError("seal: the batch has no records")
        attributes = compression
        if transactional or control or timestamp_type is not CREATE_TIME:
            attributes = batch_attributes(
                compression, timestamp_type, transactional=transactional, control=control
            )
        batch = self._view[:self._end]
        if attributes & COMPRESSION_MASK:
            packed = compress(compression, batch[OVERHEAD:], level)
            batch = memoryview(bytearray(OVERHEAD + len(packed)))
            batch[OVERHEAD:] = packed
        self._write_header(
            memory_of(batch), attributes, partition_leader_epoch, producer_id, producer_epoch,
            base_sequence,
        )
        put32(memory_of(batch).at + CRC_AT, crc32c(batch[ATTRIBUTES_AT:]))
        self._sealed = batch
        return batch

    cdef int _write_header(
        self, Memory batch, int16_t attributes, int32_t partition_leader_epoch,
        int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
    ) except -1:
        """Write the header without its checksum, as `kclient.record.sealing.write_header`."""
        cdef uint8_t *at = put64(batch.at, self.base_offset)
        at = put32(at, <uint32_t>(batch.size - LOG_OVERHEAD))
        at = put32(at, partition_leader_epoch)
        at[0] = MAGIC
        at = put32(at + 1, 0)  # the checksum
        at = put16(at, attributes)
        at = put32(at, <uint32_t>self._last_delta)
        at = put64(at, self.first_timestamp)
        at = put64(at, self.max_timestamp)
        at = put64(at, producer_id)
        at = put16(at, producer_epoch)
        at = put32(at, base_sequence)
        put32(at, self.record_count)
        return 0

    def restamp(self, producer_id, producer_epoch, base_sequence):
        """Set the producer state of the sealed batch, without compressing it again."""
        if self._sealed is None:
            raise IllegalStateError("restamp: the batch is not sealed")
        restamp_batch(self._sealed, producer_id, producer_epoch, base_sequence)
        return self._sealed

# ---- reading -----------------------------------------------------------------------------------

cdef struct Fields:
    Place next
    int64_t timestamp  # the delta, until the batch is applied to it
    int64_t offset_delta
    Blob key
    Blob value
    Place headers  # after the count
    Place end
    int64_t header_count

cdef inline bint take_blob(Place *at, Place end, Blob *out) noexcept nogil:
    cdef int64_t size = 0
    if not take_varint(at, end, VARINT_BYTES, &size) or size < -1 or size > end - at[0]:
        return False
    out.at = NULL if size < 0 else at[0]
    out.size = size
    if size > 0:
        at[0] += size
    return True

cdef const char *parse_record(Place at, Place data_end, Fields *out) noexcept nogil:
    """Parse a record; return NULL, or the error message."""
    cdef int64_t length = 0
    cdef Place end
    cdef Blob part
    cdef int64_t i
    if not take_varint(&at, data_end, VARINT_BYTES, &length):
        return "the data is truncated"
    if length < MIN_RECORD_SIZE - 1 or length > data_end - at:
        return "its length is invalid"
    end = at + length
    at += 1  # attributes, unused
    if not take_varint(&at, end, VARLONG_BYTES, &out.timestamp):
        return "its timestamp delta is invalid"
    if not take_varint(&at, end, VARINT_BYTES, &out.offset_delta):
        return "its offset delta is invalid"
    if not take_blob(&at, end, &out.key):
        return "its key exceeds the record"
    if not take_blob(&at, end, &out.value):
        return "its value exceeds the record"
    if not take_varint(&at, end, VARINT_BYTES, &out.header_count):
        return "its header count is invalid"
    if out.header_count < 0 or out.header_count > (end - at) // 2:
        return "its header count is invalid"
    out.headers = at
    for i in range(out.header_count):
        if not take_blob(&at, end, &part) or part.size < 0:
            return "a header's name is invalid"
        if not take_blob(&at, end, &part):
            return "a header's value exceeds the record"
    if at != end:
        return "its fields do not fill its length"
    out.next = out.end = end
    return NULL

cdef inline object blob_bytes(Blob blob):
    if blob.at == NULL:
        return None
    return PyBytes_FromStringAndSize(<const char *>blob.at, blob.size)

cdef list header_list(Fields *fields):
    cdef Place at = fields.headers
    cdef Blob name, value
    cdef int64_t i
    cdef list headers = []
    for i in range(fields.header_count):
        # Bounds-checked again: the memory may be shared with a socket.
        if (not take_blob(&at, fields.end, &name) or name.size < 0
                or not take_blob(&at, fields.end, &value)):
            raise CorruptRecordError("record: its headers were modified concurrently")
        headers.append((
            PyUnicode_DecodeUTF8(<char *>name.at, name.size, b"replace"), blob_bytes(value),
        ))
    return headers


class RecordBatch(AbstractRecordBatch):
    """Batch whose records are parsed by compiled code."""

    __slots__ = ()

    def records(self, max_decompressed=DEFAULT_MAX_DECOMPRESSED):
        """Return all records."""
        cdef BatchCursor cursor = BatchCursor(self, "", 0, max_decompressed=max_decompressed)
        cdef Fields fields
        cdef list records = []
        while cursor._next(&fields):
            records.append(tuple.__new__(Record, (
                cursor._base_offset + fields.offset_delta, fields.timestamp,
                blob_bytes(fields.key), blob_bytes(fields.value), header_list(&fields),
            )))
            cursor._advance(&fields)
        return records

    def summary(self, max_decompressed=DEFAULT_MAX_DECOMPRESSED):
        """Read all records and return their summary."""
        cdef BatchCursor cursor = BatchCursor(self, "", 0, max_decompressed=max_decompressed)
        cdef Fields fields
        cdef int64_t low = -1, high = -1, at = -1, last_delta = -1, count = 0, null_keys = 0
        while cursor._next(&fields):
            low = min(low, fields.timestamp) if count else fields.timestamp
            if count == 0 or fields.timestamp > high:
                high = fields.timestamp
                at = cursor._base_offset + fields.offset_delta
            null_keys += fields.key.at == NULL
            last_delta = fields.offset_delta
            count += 1
            cursor._advance(&fields)
        return RecordsSummary(count, low, high, at, null_keys, last_delta == count - 1)

def read_batches(buffer, *, max_batch_size=None):
    """Yield the consecutive batches of `buffer`; an incomplete one ends the iteration."""
    return read_batches_of_kind(RecordBatch, buffer, max_batch_size=max_batch_size)


cdef class ConsumerRecord:
    """Record received by a consumer (Kafka: ConsumerRecord).

    Attributes:
        topic: Topic.
        partition: Partition.
        offset: Offset.
        timestamp_ms: Milliseconds since the epoch, -1 for none.
        timestamp_type: Type of the timestamp.
        key: Deserialized key; bytes or None without a deserializer.
        value: Deserialized value; bytes or None without a deserializer.
        headers: Headers in order.
        leader_epoch: Epoch of the leader that appended it, -1 if unknown.
        serialized_key_size: Size of the serialized key in bytes, -1 for null.
        serialized_value_size: Size of the serialized value in bytes, -1 for null.
    """
    cdef readonly object topic, timestamp_type, key, value
    cdef object _headers  # None for no headers; the list is created at its first use
    cdef readonly int64_t offset, timestamp_ms
    cdef readonly int32_t partition, leader_epoch, serialized_key_size, serialized_value_size

    def __init__(
        self, topic, partition, offset, timestamp_ms=-1,
        timestamp_type=TimestampType.NO_TIMESTAMP_TYPE, key=None, value=None, headers=None,
        leader_epoch=-1, serialized_key_size=-1, serialized_value_size=-1,
    ):
        self.topic, self.partition, self.offset = topic, partition, offset
        self.timestamp_ms, self.timestamp_type = timestamp_ms, timestamp_type
        self.key, self.value, self._headers = key, value, headers
        self.leader_epoch = leader_epoch
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size

    @property
    def headers(self):
        """Headers in order."""
        if self._headers is None:
            self._headers = []
        return self._headers

    @property
    def topic_partition(self):
        """Topic and partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def timestamp(self):
        """Alias of `timestamp_ms`."""
        return self.timestamp_ms

    @classmethod
    def __class_getitem__(cls, types):
        """Return the class with the types of key and value, for annotations."""
        return GenericAlias(cls, types)

    cdef tuple _fields(self):
        return (
            self.topic, self.partition, self.offset, self.timestamp_ms, self.timestamp_type,
            self.key, self.value, self.headers, self.leader_epoch, self.serialized_key_size,
            self.serialized_value_size,
        )

    def __eq__(self, other):
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self._fields() == (<ConsumerRecord>other)._fields()

    def __hash__(self):
        return hash(self._fields())

    def __reduce__(self):
        return ConsumerRecord, self._fields()

    def __repr__(self):
        from kclient.record import reference  # imported if used: it defines a dataclass
        fields = zip(reference.ConsumerRecord.__slots__, self._fields())
        return f"ConsumerRecord({', '.join([f'{name}={value!r}' for name, value in fields])})"


cdef class BatchCursor:
    """Position in a batch, from which records are taken."""
    cdef object _batch, _topic, _key_deserializer, _value_deserializer, _max_decompressed
    cdef bint _key_data_only, _value_data_only
    cdef object _timestamp_type
    cdef int64_t _base_offset, _base_timestamp, _max_timestamp, _last_delta, _count
    cdef int32_t _partition, _leader_epoch
    cdef bint _append_time
    cdef int64_t _position
    cdef object _payload  # None until the first record is read
    cdef Memory _data
    cdef Py_ssize_t _byte
    cdef int64_t _index, _previous

    def __cinit__(
        self, batch, topic, partition, start_offset=0, *,
        key_deserializer=None, value_deserializer=None, max_decompressed=DEFAULT_MAX_DECOMPRESSED,
    ):
        self._batch = batch
        self._topic = topic
        self._partition = partition
        self._key_data_only = type(key_deserializer) is DataOnly
        self._value_data_only = type(value_deserializer) is DataOnly
        self._key_deserializer = key_deserializer.function if self._key_data_only else key_deserializer
        self._value_deserializer = (
            value_deserializer.function if self._value_data_only else value_deserializer
        )
        self._max_decompressed = max_decompressed
        self._timestamp_type = batch.timestamp_type
        self._append_time = self._timestamp_type is TimestampType.LOG_APPEND_TIME
        self._base_offset = batch.base_offset
        self._base_timestamp = batch.base_timestamp
        self._max_timestamp = batch.max_timestamp
        self._last_delta = batch.last_offset_delta
        self._leader_epoch = batch.partition_leader_epoch
        self._position = max(as_int64(start_offset, "start_offset", 0), self._base_offset)
        self._count = batch.count if self._position <= batch.last_offset else 0
        self._previous = -1

    @property
    def exhausted(self):
        """Whether all records were taken."""
        return self._index >= self._count

    @property
    def position(self):
        """Next offset to read; the offset after the batch once all its records were taken."""
        if self._index >= self._count:
            return max(self._position, self._base_offset + self._last_delta + 1)
        return self._position

    def take(self, max_records=INT32_MAX):
        """Return the next records, at most `max_records`; an empty list at the end."""
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        cdef list taken = []
        cdef Fields fields
        before = (self._byte, self._index, self._previous, self._position)
        try:
            while len(taken) < most and self._next(&fields):
                taken.append(self._consumer_record(&fields))
                self._advance(&fields)
        except (CorruptRecordError, RecordDeserializationError):
            if not taken:
                raise
        except BaseException:
            self._byte, self._index, self._previous, self._position = before
            raise
        return taken

    def take_columns(self, ColumnBuilder columns not None, max_records=INT32_MAX):
        """Append the next records to columns, without deserialization, and return their number."""
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        cdef Py_ssize_t taken = 0
        cdef Fields fields
        try:
            while taken < most and self._next(&fields):
                if not columns._has_capacity(fields.next - self._data.at - self._byte):
                    break
                columns._add(self._base_offset, self._append_time, &fields)
                self._advance(&fields)
                taken += 1
        except CorruptRecordError:
            if not taken:
                raise
        if self._index >= self._count:
            columns.next_offset = max(columns.next_offset, self.position)
        return taken

    def skip(self):
        """Skip the next record without deserializing it."""
        cdef Fields fields
        if self._next(&fields):
            self._advance(&fields)

    cdef int _load(self) except -1:
        self._payload = memoryview(self._batch.payload(self._max_decompressed)).cast("B")
        self._data = memory_of(self._payload)
        if self._batch.count == 0 and self._data.size != 0:
            raise self._surplus(self._data.size)
        return 0

    cdef object _surplus(self, Py_ssize_t size):
        return self._batch.corrupt(f"{size} bytes follow the last of its {self._count} records")

    cdef bint _next(self, Fields *out) except -1:
        """Parse the next record to return, without advancing; False at the end."""
        if self._payload is None:
            self._load()
        while self._index < self._count:
            self._parse(out)
            if self._base_offset + out.offset_delta >= self._position:
                return True
            self._previous = out.offset_delta
            self._byte = out.next - self._data.at
            self._index += 1
        return False

    cdef inline int _parse(self, Fields *out) except -1:
        cdef Place end = self._data.at + self._data.size
        cdef const char *wrong = parse_record(self._data.at + self._byte, end, out)
        cdef int64_t base = self._base_timestamp
        if wrong != NULL:
            raise self._batch.corrupt(f"record {self._index}: {wrong.decode()}")
        if out.offset_delta <= self._previous or out.offset_delta > self._last_delta:
            raise self._batch.corrupt(
                f"record {self._index}: its offset delta {out.offset_delta} is not between the "
                f"one before, {self._previous}, and the last one, {self._last_delta}"
            )
        # Avoids overflow: the sum is computed only where the preceding comparison excludes it.
        if (
            base > INT64_MAX - out.timestamp or base + out.timestamp < -INT64_MAX
            if out.timestamp >= 0
            else base < -INT64_MAX - out.timestamp
        ):
            raise self._batch.corrupt(f"record {self._index}: its timestamp has more than 64 bits")
        if self._index == self._count - 1 and out.next != end:
            raise self._surplus(end - out.next)
        if self._append_time:
            out.timestamp = self._max_timestamp
        else:
            out.timestamp += base
        return 0

    cdef inline void _advance(self, Fields *fields) noexcept:
        self._byte = fields.next - self._data.at
        self._previous = fields.offset_delta
        self._position = self._base_offset + fields.offset_delta + 1
        self._index += 1

    cdef ConsumerRecord _consumer_record(self, Fields *fields):
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        record.topic = self._topic
        record.partition = self._partition
        record.offset = self._base_offset + fields.offset_delta
        record.timestamp_ms = fields.timestamp
        record.timestamp_type = self._timestamp_type
        record.leader_epoch = self._leader_epoch
        record.serialized_key_size = <int32_t>fields.key.size
        record.serialized_value_size = <int32_t>fields.value.size
        record.key = blob_bytes(fields.key)
        record.value = blob_bytes(fields.value)
        if fields.header_count:
            record._headers = header_list(fields)
        if self._key_deserializer is None and self._value_deserializer is None:
            # It refers to bytes and str only and is immutable: it cannot be part of a cycle.
            PyObject_GC_UnTrack(<void *>record)
        else:
            self._deserialize(record)
        return record

    cdef int _deserialize(self, ConsumerRecord record) except -1:
        cdef object key = record.key
        cdef object value = record.value
        cdef str origin = "key"
        try:
            if key is not None and self._key_deserializer is not None:
                record.key = (
                    self._key_deserializer(key)
                    if self._key_data_only
                    else self._key_deserializer(self._topic, record.headers, key)
                )
            origin = "value"
            if value is not None and self._value_deserializer is not None:
                record.value = (
                    self._value_deserializer(value)
                    if self._value_data_only
                    else self._value_deserializer(self._topic, record.headers, value)
                )
        except Exception as error:
            place = (record.topic_partition, record.offset, record.timestamp_ms)
            raise RecordDeserializationError(
                origin, *place, key, value, record.headers, error
            ) from error
        return 0

# ---- columns -----------------------------------------------------------------------------------

cdef class GrowingBuffer:
    """A bytearray that quadruples when it is full, and is trimmed at the end."""
    cdef bytearray _data
    cdef uint8_t *_at
    cdef Py_ssize_t used, _size

    def __cinit__(self):
        self._data = bytearray()

    cdef inline uint8_t *reserve(self, Py_ssize_t more) except NULL:
        """Reserve the next `more` bytes and return their address."""
        if self.used + more > self._size:
            self._grow(more)
        self.used += more
        return self._at + (self.used - more)

    cdef int _grow(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t size = max(4096, 4 * self._size, self.used + more)
        PyByteArray_Resize(self._data, size)
        self._at = <uint8_t *>PyByteArray_AS_STRING(self._data)
        self._size = size
        return 0

    cdef bytearray finish(self):
        cdef bytearray data = self._data
        PyByteArray_Resize(data, self.used)
        self._data = bytearray()
        self._size = self.used = 0
        return data


cdef class BinaryColumnBuilder:
    """Builder of one column of byte strings."""
    cdef GrowingBuffer _offsets, data, _validity
    cdef Py_ssize_t length, _nulls

    def __cinit__(self):
        self._offsets = GrowingBuffer()
        self.data = GrowingBuffer()
        self._validity = GrowingBuffer()
        (<int32_t *>self._offsets.reserve(4))[0] = 0

    cdef int add(self, Blob blob) except -1:
        if blob.size > 0:
            memcpy(self.data.reserve(blob.size), blob.at, blob.size)
        if self.data.used > INT32_MAX:
            raise RecordTooLargeError("columns: got more than 2 GiB in one column")
        (<int32_t *>self._offsets.reserve(4))[0] = <int32_t>self.data.used
        if self.length & 7 == 0:
            self._validity.reserve(1)[0] = 0
        if blob.at != NULL:
            self._validity._at[self.length >> 3] |= 1 << (self.length & 7)
        else:
            self._nulls += 1
        self.length += 1
        return 0

    cdef finish(self):
        validity = self._validity.finish()
        return BinaryColumn(
            self.length, self._offsets.finish(), self.data.finish(),
            validity if self._nulls else None,
        )


cdef class ColumnBuilder:
    """Builder of columns; records are added by `BatchCursor.take_columns`."""
    cdef GrowingBuffer _offsets, _timestamps, _timestamp_types, _header_offsets
    cdef BinaryColumnBuilder _keys, _values, _header_keys, _header_values
    cdef Py_ssize_t _max_bytes
    cdef readonly Py_ssize_t length
    cdef public int64_t next_offset

    def __cinit__(self, max_bytes=DEFAULT_MAX_BYTES):
        if not 0 < max_bytes <= INT32_MAX:
            raise InvalidArgumentError(f"max_bytes: got {max_bytes}, expected 1 to {INT32_MAX}")
        self._max_bytes = max_bytes
        self._offsets = GrowingBuffer()
        self._timestamps = GrowingBuffer()
        self._timestamp_types = GrowingBuffer()
        self._header_offsets = GrowingBuffer()
        self._keys = BinaryColumnBuilder()
        self._values = BinaryColumnBuilder()
        self._header_keys = BinaryColumnBuilder()
        self._header_values = BinaryColumnBuilder()
        (<int32_t *>self._header_offsets.reserve(4))[0] = 0
        self.next_offset = -1

    cdef inline bint _has_capacity(self, Py_ssize_t size) noexcept:
        cdef Py_ssize_t used = max(
            self._keys.data.used, self._values.data.used, self._header_keys.data.used,
            self._header_values.data.used,
        )
        return used + size <= self._max_bytes or self.length == 0

    cdef int _add(self, int64_t base_offset, bint append_time, Fields *fields) except -1:
        cdef int64_t offset = base_offset + fields.offset_delta
        (<int64_t *>self._offsets.reserve(8))[0] = offset
        (<int64_t *>self._timestamps.reserve(8))[0] = fields.timestamp
        self._timestamp_types.reserve(1)[0] = append_time
        self._keys.add(fields.key)
        self._values.add(fields.value)
        for name, value in header_list(fields) if fields.header_count else ():
            encoded = name.encode()
            self._header_keys.add(blob_of(encoded))
            self._header_values.add(blob_of(value))
        (<int32_t *>self._header_offsets.reserve(4))[0] = <int32_t>self._header_keys.length
        self.length += 1
        self.next_offset = offset + 1
        return 0

    def finish(self):
        """Return the columns; the builder must not be used afterwards."""
        return Columns(
            self.length, self.next_offset, self._offsets.finish(), self._timestamps.finish(),
            self._timestamp_types.finish(), self._keys.finish(), self._values.finish(),
            self._header_offsets.finish(), self._header_keys.finish(), self._header_values.finish(),
        )

def decode_columns(batches, start_offset=0, **options):
    """Return the records of batches of one partition as columns, without control batches."""
    from kclient.record import reference  # imported if used
    return reference.decode_columns(
        batches, start_offset, cursor_kind=BatchCursor, builder_kind=ColumnBuilder, **options
    )
