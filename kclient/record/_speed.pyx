# cython: language_level=3, wraparound=False, embedsignature=True
"""Compiled writing of batches with the behaviour of `kclient.record.reference`, which documents it.

The names of the reading half, ``_speed_reading.pyx``, are imported at the end, so that this module has
those of the reference.
"""

from cpython.bytes cimport PyBytes_Check, PyBytes_GET_SIZE
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)
from libc.string cimport memcpy

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import IllegalStateError, InvalidArgumentError
from kclient.record.batch_header import batch_attributes
from kclient.record.checksum import crc32c
from kclient.record.compression import CompressionType, compress
from kclient.record import record_encoder
from kclient.record.sealing import restamp_batch
from kclient.record.batch_header import TimestampType

cdef enum:
    OVERHEAD = 61
    LOG_OVERHEAD = 12
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    COMPRESSION_MASK = 7
    MAGIC = 2
    MAX_RECORD_OVERHEAD = 21
    MAX_LENGTHS = 10

cdef bytes NO_HEADERS = b"\x00"
cdef object CREATE_TIME = TimestampType.CREATE_TIME

# ---- integers ----------------------------------------------------------------------------------

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

cdef bytes pack_headers(object headers):
    return record_encoder.encode_headers(headers) if headers else NO_HEADERS

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
        cdef int64_t timestamp = as_timestamp(timestamp_ms)
        cdef bytes tail = pack_headers(headers)
        return self.append_next(timestamp, as_bytes(key, "key"), as_bytes(value, "value"), tail)

    def append_encoded(self, timestamp_ms, bytes key, bytes value, bytes headers not None):
        """Append a record of bytes whose headers are encoded, as `append`."""
        return self.append_next(as_timestamp(timestamp_ms), key, value, headers)

    cdef int64_t append_next(
        self, int64_t timestamp, object key, object value, bytes headers
    ) except -2:
        return self._append(
            self._last_delta + 1, timestamp, blob_of(key), blob_of(value), blob_of(headers)
        )

    def append_with_offset(self, offset, timestamp_ms, key, value, headers=None):
        """Append a record at an offset, which may leave a gap; otherwise as `append`."""
        cdef int64_t timestamp = as_timestamp(timestamp_ms)
        cdef bytes tail = pack_headers(headers)
        key = as_bytes(key, "key")
        value = as_bytes(value, "value")
        delta = offset - self.base_offset
        if not self._last_delta < delta <= INT32_MAX:  # last: the code above may run an append
            raise InvalidArgumentError(
                f"offset: got {offset}, expected {self.next_offset} or later, "
                f"within 2**31 of {self.base_offset}"
            )
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
            self.move_to(bytearray(end))
            if self.record_count:
                return -1  # a finalizer, run by the allocation, has appended a record
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

from kclient.record._speed_column_builder import ColumnBuilder
from kclient.record._speed_reading import (
    BatchCursor, ConsumerRecord, PartitionCursor, RecordBatch, decode_columns, read_batches,
)
