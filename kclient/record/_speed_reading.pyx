# cython: language_level=3, wraparound=False, embedsignature=True
"""Compiled reading of batches with the behaviour of `kclient.record.reference`, which documents it.

Every read is bounds-checked against the end of the record or of the data; a received length is used
only after it was checked against the remaining data.
"""

from types import GenericAlias

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport (
    INT32_MAX, INT64_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t,
)
from libc.stdlib cimport free, realloc

from kclient.record._speed cimport Blob, Memory, Place, as_int64, memory_of
from kclient.record._speed_column_builder cimport ColumnBuilder, Rows, add_row

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.converters import DataOnly
from kclient.common.errors import CompressionError, IllegalStateError, KafkaError
from kclient.common.foreign_names import ForeignName
from kclient.common.types import TopicPartition
from kclient.record.batch_header import TimestampType
from kclient.record.checksum import crc32c
from kclient.record.errors import RecordDeserializationError
from kclient.record.payload_window import DEFAULT_MAX_RECORD_BYTES
from kclient.record.record import IN_USE, RECORD_NAMES, Record, RecordsSummary
from kclient.record.record_batch import AbstractRecordBatch, read_batches as read_batches_of_kind
from kclient.record.varints import MalformedRecordError

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void *)

cdef enum:
    OVERHEAD = 61
    LOG_OVERHEAD = 12
    ATTRIBUTES_AT = 21
    COMPRESSION_MASK = 0x07
    TIMESTAMP_TYPE_FLAG = 0x08
    CONTROL_FLAG = 0x20
    MAGIC = 2
    MIN_RECORD_SIZE = 7
    VARINT_BYTES = 5
    VARLONG_BYTES = 10

cdef object CREATE_TIME = TimestampType.CREATE_TIME
cdef object LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME

# ---- records -----------------------------------------------------------------------------------

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
    cdef Place start = at[0]
    cdef uint32_t value
    if start < end and start[0] < 0x80:
        value = start[0]
        at[0] = start + 1
    elif start + 1 < end and start[1] < 0x80:  # as the sizes of most records and values
        value = start[0] & 0x7F | <uint32_t>start[1] << 7
        at[0] = start + 2
    else:
        return take_long_varint(at, end, max_bytes, out)
    out[0] = <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
    return True

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
    out.at = NULL
    if size >= 0:
        out.at = at[0]
    out.size = size
    if size > 0:
        at[0] += size
    return True

cdef inline const char *parse_headers(Place at, Place end, Fields *out) noexcept nogil:
    """Parse the headers of a record, which ends with them; return NULL, or the error message."""
    cdef Blob part
    cdef int64_t i
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

cdef const char *parse_record(Place at, Place data_end, Fields *out) noexcept nogil:
    """Parse a record; return NULL, or the error message."""
    cdef int64_t length = 0
    cdef Place end
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
    return parse_headers(at, end, out)

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

    def records(self, max_record_bytes=DEFAULT_MAX_RECORD_BYTES):
        """Return all records."""
        cdef RecordParser cursor = BatchCursor(self, "", 0, max_record_bytes=max_record_bytes)
        cdef Fields fields
        cdef list records = []
        while cursor._next(&fields):
            records.append(tuple.__new__(Record, (
                cursor._base_offset + fields.offset_delta, fields.timestamp,
                blob_bytes(fields.key), blob_bytes(fields.value), header_list(&fields),
            )))
            cursor._advance(&fields)
        return records

    def summary(self):
        """Read all records and return their summary; the memory does not depend on their size."""
        cdef RecordParser cursor = RecordParser.__new__(RecordParser)
        cdef Fields fields
        cdef int64_t low = -1, high = -1, at = -1, last_delta = -1, count = 0, null_keys = 0
        cursor._max_record_bytes = DEFAULT_MAX_RECORD_BYTES
        cursor._skims = True
        cursor._set_batch(self, 0)
        while cursor._next(&fields):
            low = min(low, fields.timestamp) if count else fields.timestamp
            if count == 0 or fields.timestamp > high:
                high = fields.timestamp
                at = cursor._base_offset + fields.offset_delta
            null_keys += fields.key.at == NULL
            last_delta = fields.offset_delta
            count += 1
            cursor._advance(&fields)
        return tuple.__new__(RecordsSummary, (
            count, low, high, at, null_keys, last_delta == count - 1,
        ))

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

    checksum = ForeignName("checksum", RECORD_NAMES)
    error = ForeignName("error", RECORD_NAMES)
    serialized_header_size = ForeignName("serialized_header_size", RECORD_NAMES)

    def __dir__(self):
        """Return the names that exist."""
        return [name for name in object.__dir__(self) if name not in RECORD_NAMES]

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
        # Without key, value and headers, which may be mutable.
        return hash((self.topic, self.partition, self.offset, self.timestamp_ms))

    def _asdict(self):
        """Return the fields by name, as of a named tuple, for example for pandas."""
        from kclient.record import reference  # imported if used: it defines a dataclass
        return dict(zip(reference.ConsumerRecord.__match_args__, self._fields()))

    def __reduce__(self):
        return ConsumerRecord, self._fields()

    def __repr__(self):
        from kclient.record import reference  # imported if used: it defines a dataclass
        fields = zip(reference.ConsumerRecord.__match_args__, self._fields())
        return f"ConsumerRecord({', '.join([f'{name}={value!r}' for name, value in fields])})"


cdef class RecordParser:
    """Base class of cursors: parses the records of one batch after another."""
    cdef object _batch  # None until it is needed, if `_view` has it
    cdef object _view, _topic, _key_deserializer, _value_deserializer, _max_record_bytes
    cdef bint _key_data_only, _value_data_only, _deserializes
    cdef object _timestamp_type
    cdef int64_t _base_offset, _base_timestamp, _max_timestamp, _last_delta, _count, _stated
    cdef int32_t _partition, _leader_epoch
    cdef bint _append_time, _loaded
    cdef bint _skims  # whether large records are parsed without key and value
    cdef int64_t _position
    cdef object _window  # of a batch that is not decompressed at once, else None
    cdef object _payload
    cdef bint _in_use
    cdef Memory _data
    cdef Py_ssize_t _byte, _at
    cdef int64_t _index, _previous, _window_number

    cdef int _prepare(
        self, topic, partition, key_deserializer, value_deserializer, max_record_bytes
    ) except -1:
        self._topic = topic
        self._partition = partition
        self._deserializes = key_deserializer is not None or value_deserializer is not None
        self._key_data_only = type(key_deserializer) is DataOnly
        self._value_data_only = type(value_deserializer) is DataOnly
        self._key_deserializer = key_deserializer.function if self._key_data_only else key_deserializer
        self._value_deserializer = (
            value_deserializer.function if self._value_data_only else value_deserializer
        )
        self._max_record_bytes = max_record_bytes
        return 0

    cdef int _begin_call(self) except -1:
        """Begin a call; the caller sets `_in_use` to False at its end.

        Code of the application runs meanwhile, as deserializers and finalizers: if it changed the
        position or released the payload, the fields of the present record would be invalid.
        """
        if self._in_use:
            raise IllegalStateError(IN_USE)
        self._in_use = True
        return 0

    cdef int _set_batch(self, batch, int64_t start_offset) except -1:
        self._batch = batch
        # Not by its properties, which are Python functions.
        self._append_time = (batch.attributes & TIMESTAMP_TYPE_FLAG) != 0
        self._timestamp_type = LOG_APPEND_TIME if self._append_time else CREATE_TIME
        base_offset = batch.base_offset
        self._base_offset = base_offset
        self._base_timestamp = batch.base_timestamp
        self._max_timestamp = batch.max_timestamp
        self._last_delta = batch.last_offset_delta
        self._leader_epoch = batch.partition_leader_epoch
        self._position = max(start_offset, self._base_offset)
        self._stated = batch.count
        self._count = self._stated if self._position <= base_offset + batch.last_offset_delta else 0
        self._previous = -1
        return 0

    cdef object _the_batch(self):
        if self._batch is None:
            self._batch = RecordBatch(self._view, self._at, validate=False)
        return self._batch

    cdef int _load(self) except -1:
        window = self._the_batch().window(self._max_record_bytes)
        self._use(window)
        self._loaded = True
        if self._stated == 0 and not window.ends_at(0):
            raise self._surplus()
        return 0

    cdef int _use(self, window) except -1:
        """Parse the data of a window; one that is not the last is moved later."""
        self._payload = memoryview(window.data).cast("B")
        self._data = memory_of(self._payload)
        self._window = None if window.is_last else window
        self._window_number += 1
        return 0

    cdef bint _advance_window(self) except -1:
        """Move the window to the next record; False if it need not be moved."""
        window = self._window
        has_moved = False
        self._payload = None  # so that its memory is freed before the new window grows
        self._data = Memory(NULL, 0)
        try:
            has_moved = window.advance(self._byte)
        except KafkaError:
            self._use(window)
            raise
        except BaseException:  # an interrupt while the window was moved
            self._restart(self._position)
            raise
        if has_moved:
            self._byte = 0
        self._use(window)
        return has_moved

    cdef int _restart(self, int64_t position) except -1:
        """Read the batch from its start again, up to a position; it may be out of the window."""
        self._loaded = False
        self._payload = self._window = None
        self._data = Memory(NULL, 0)
        self._byte = self._index = 0
        self._previous = -1
        self._position = position
        return 0

    cdef object _corrupt(self, what):
        return self._the_batch().corrupt(f"record {self._index}: {what}")

    cdef object _surplus(self):
        return self._the_batch().corrupt(f"data follows the last of its {self._stated} records")

    cdef inline bint _next(self, Fields *out) except -1:
        """Parse the next record to return, without advancing; False at the end."""
        if not self._loaded:
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
            end = self._parse_incomplete(out, wrong)
        if out.offset_delta <= self._previous or out.offset_delta > self._last_delta:
            raise self._corrupt(
                f"its offset delta {out.offset_delta} is not between the "
                f"one before, {self._previous}, and the last one, {self._last_delta}"
            )
        # Avoids overflow: the sum is computed only where the preceding comparison excludes it.
        if (
            base > INT64_MAX - out.timestamp or base + out.timestamp < -INT64_MAX
            if out.timestamp >= 0
            else base < -INT64_MAX - out.timestamp
        ):
            raise self._corrupt("its timestamp has more than 64 bits")
        if self._index == self._count - 1:
            self._check_end(out.next == end)
        if self._append_time:
            out.timestamp = self._max_timestamp
        else:
            out.timestamp += base
        return 0

    cdef Place _parse_incomplete(self, Fields *out, const char *wrong) except NULL:
        """Parse a record whose rest is not in the window, and return the new end of the window."""
        cdef Place end = NULL
        while wrong != NULL:
            if self._skims and self._window is not None and self._skim(out):
                return self._data.at + self._data.size
            if self._window is None or not self._advance_window():
                raise self._corrupt(wrong.decode())
            end = self._data.at + self._data.size
            wrong = parse_record(self._data.at + self._byte, end, out)
        return end

    cdef bint _skim(self, Fields *out) except -1:
        """Parse a record that is larger than a window without key and value; False if it is not."""
        cdef const char *wrong
        cdef int64_t size
        window = self._window
        try:
            large = window.skim(self._byte)
        except MalformedRecordError as error:
            raise self._corrupt(str(error)) from None
        if large is None:
            return False
        self._use(window)
        self._window = window  # its end was not checked
        self._byte = 0
        out.timestamp = large.timestamp_delta
        out.offset_delta = large.offset_delta
        out.key = Blob(NULL, -1)
        if large.has_key:
            out.key = Blob(self._data.at, 0)
        out.value = Blob(NULL, -1)
        size = large.headers_size
        wrong = parse_headers(self._data.at, self._data.at + size, out)
        if wrong != NULL:
            raise self._corrupt(wrong.decode())
        return True

    cdef int _check_end(self, bint is_end_of_window) except -1:
        if not is_end_of_window or (
            self._window is not None and not self._window.ends_at(self._data.size)
        ):
            raise self._surplus()
        return 0

    cdef inline void _advance(self, Fields *fields) noexcept:
        self._byte = fields.next - self._data.at
        self._previous = fields.offset_delta
        self._position = self._base_offset + fields.offset_delta + 1
        self._index += 1

    cdef int _take(self, list taken, Py_ssize_t most) except -1:
        """Append the next records of the batch, until there are `most`."""
        cdef Fields fields
        while len(taken) < most and self._next(&fields):
            taken.append(self._consumer_record(&fields))
            self._advance(&fields)
        return 0

    cdef Py_ssize_t _take_columns(
        self, ColumnBuilder columns, Py_ssize_t most, Py_ssize_t *taken
    ) except -1:
        """Append the next records of the batch to columns, until there are `most`."""
        cdef Fields fields
        cdef int64_t reserved = -1  # number of the window whose rows have reserved memory
        if taken[0] >= most:
            return 0
        if not self._loaded:
            self._load()
        while True:
            if reserved != self._window_number:
                self._reserve_rows(columns, most - taken[0])
                reserved = self._window_number
            taken[0] += self._take_rows(columns, most - taken[0])
            if taken[0] == most or not self._next(&fields):
                break
            if reserved != self._window_number:
                continue  # the record is parsed again, with memory for those of its window
            if not columns.has_capacity(fields.next - self._data.at - self._byte):
                break
            if fields.header_count:
                columns.add_headers(header_list(&fields))
            columns.add(
                self._base_offset + fields.offset_delta, self._append_time, fields.timestamp,
                fields.key, fields.value,
            )
            self._advance(&fields)
            taken[0] += 1
        return 0

    cdef Py_ssize_t _take_rows(self, ColumnBuilder columns, Py_ssize_t most) noexcept:
        """Append the next records of the batch but the last one, as far as nothing is to be decided.

        This ends at a record with headers, one to be skipped, an invalid one, or if memory is missing.
        """
        cdef Fields fields
        cdef Rows rows = columns.rows()
        cdef Py_ssize_t first = rows.length
        cdef Py_ssize_t end_row = first + min(most, self._count - 1 - self._index)
        cdef Place at = self._data.at + self._byte
        cdef Place end = self._data.at + self._data.size
        cdef int64_t base = self._base_timestamp
        cdef int64_t far = INT64_MAX // 2  # the sum of two timestamps nearer than this is no overflow
        cdef int64_t previous = max(self._previous, self._position - self._base_offset - 1)
        if not -far < base < far:
            return 0
        while rows.length < end_row and parse_record(at, end, &fields) == NULL:
            if (
                fields.header_count
                or not previous < fields.offset_delta <= self._last_delta
                or not -far < fields.timestamp < far
                or not add_row(
                    &rows, fields.next - at, self._base_offset + fields.offset_delta,
                    self._max_timestamp if self._append_time else base + fields.timestamp,
                    fields.key, fields.value,
                )
            ):
                break
            previous = fields.offset_delta
            at = fields.next
        columns.follow(&rows, self._append_time)
        if rows.length > first:
            self._byte = at - self._data.at
            self._previous = previous
            self._position = self._base_offset + previous + 1
            self._index += rows.length - first
        return rows.length - first

    cdef int _reserve_rows(self, ColumnBuilder columns, int64_t most) except -1:
        """Reserve memory for at most so many records of the batch, which is bounded by its size."""
        cdef int64_t left = self._data.size - self._byte
        cdef int64_t rows = min(self._count - self._index, left // MIN_RECORD_SIZE)
        if rows > most:
            left, rows = left // rows * most, most
        if rows > 0:
            columns.reserve(rows, left)
        return 0

    cdef inline ConsumerRecord _consumer_record(self, Fields *fields):
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
        if self._deserializes:
            self._deserialize(record)
        else:
            # It refers to bytes and str only and is immutable: it cannot be part of a cycle.
            PyObject_GC_UnTrack(<void *>record)
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


cdef class BatchCursor(RecordParser):
    """Position in a batch, from which records are taken."""

    def __cinit__(
        self, batch, topic, partition, start_offset=0, *,
        key_deserializer=None, value_deserializer=None, max_record_bytes=DEFAULT_MAX_RECORD_BYTES,
    ):
        self._prepare(topic, partition, key_deserializer, value_deserializer, max_record_bytes)
        self._set_batch(batch, as_int64(start_offset, "start_offset", 0))

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
        cdef list taken = []
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        cdef int64_t index = self._index
        cdef int64_t position = self._position
        self._begin_call()
        try:
            self._take(taken, most)
        except (CorruptRecordError, CompressionError, RecordDeserializationError):
            if not taken:
                raise
        except BaseException:
            if self._index != index:
                self._restart(position)
            raise
        finally:
            self._in_use = False
        return taken

    def take_columns(self, ColumnBuilder columns not None, max_records=INT32_MAX):
        """Append the next records to columns, without deserialization, and return their number."""
        cdef Py_ssize_t taken = 0
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        self._begin_call()
        try:
            self._take_columns(columns, most, &taken)
        except (CorruptRecordError, CompressionError):
            if not taken:
                raise
        finally:
            self._in_use = False
        if self._index >= self._count:
            columns.next_offset = max(columns.next_offset, self.position)
        return taken

    def skip(self):
        """Skip the next record without deserializing it."""
        cdef Fields fields
        self._begin_call()
        try:
            if self._next(&fields):
                self._advance(&fields)
        finally:
            self._in_use = False


cdef struct BatchRow:
    int64_t at, size, base_offset, base_timestamp, max_timestamp, producer_id
    int32_t last_delta, leader_epoch, count
    uint32_t crc
    int16_t attributes
    bint visible

cdef inline uint64_t big_endian(Place at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return value

cdef bint read_row(Place data, Py_ssize_t size, Py_ssize_t at, BatchRow *row) noexcept nogil:
    """Read the header of a batch; False if it is invalid or the batch is incomplete."""
    cdef Place head = data + at
    cdef int64_t length
    if size - at < OVERHEAD or head[16] != MAGIC:
        return False
    row.at = at
    row.base_offset = <int64_t>big_endian(head, 8)
    length = <int64_t><int32_t>big_endian(head + 8, 4) + LOG_OVERHEAD
    if length < OVERHEAD or length > size - at or row.base_offset < 0:
        return False
    row.size = length
    row.leader_epoch = <int32_t>big_endian(head + 12, 4)
    row.crc = <uint32_t>big_endian(head + 17, 4)
    row.attributes = <int16_t>big_endian(head + ATTRIBUTES_AT, 2)
    row.last_delta = <int32_t>big_endian(head + 23, 4)
    row.base_timestamp = <int64_t>big_endian(head + 27, 8)
    row.max_timestamp = <int64_t>big_endian(head + 35, 8)
    row.producer_id = <int64_t>big_endian(head + 43, 8)
    row.count = <int32_t>big_endian(head + 57, 4)
    return (
        0 <= row.last_delta < INT64_MAX - row.base_offset
        and 0 <= row.count <= <int64_t>row.last_delta + 1
    )


cdef class PartitionCursor(RecordParser):
    """Position in the batches of one partition, from which records are taken."""
    cdef object _hides
    cdef bint _check_crcs, _reading
    cdef Memory _memory
    cdef BatchRow *_rows
    cdef Py_ssize_t _row_count, _capacity
    cdef Py_ssize_t _row, _visited  # the present batch; those before `_visited` were opened
    cdef readonly int64_t position, end_offset, size, remaining
    cdef readonly int32_t last_epoch, end_epoch
    cdef readonly object problem

    def __cinit__(
        self, buffer, topic, partition, start_offset=0, start_epoch=-1, *, check_crcs=True,
        hides=None, key_deserializer=None, value_deserializer=None,
        max_record_bytes=DEFAULT_MAX_RECORD_BYTES,
    ):
        self._prepare(topic, partition, key_deserializer, value_deserializer, max_record_bytes)
        self._check_crcs = check_crcs
        self._hides = hides
        self._view = memoryview(buffer).cast("B")
        self._memory = memory_of(self._view)
        self.position = self.end_offset = start_offset
        self.last_epoch = self.end_epoch = start_epoch
        self._read_rows()
        self.remaining = self.size

    def __dealloc__(self):
        free(self._rows)

    cdef int _read_rows(self) except -1:
        cdef Py_ssize_t at = 0
        cdef BatchRow row
        while read_row(self._memory.at, self._memory.size, at, &row):
            if row.base_offset + row.last_delta >= self.position:
                self._add_row(&row)
            at += row.size
        if at < self._memory.size:
            self._find_problem(at)
        return 0

    cdef int _find_problem(self, Py_ssize_t at) except -1:
        """Keep the error of an invalid header; an incomplete batch at the end is none."""
        try:
            for _ in read_batches(self._view[at:]):
                break
        except KafkaError as error:
            self.problem = error
        return 0

    cdef int _add_row(self, BatchRow *row) except -1:
        cdef void *rows
        if self._row_count == self._capacity:
            self._capacity = max(16, 4 * self._capacity)
            rows = realloc(self._rows, self._capacity * sizeof(BatchRow))
            if rows == NULL:
                raise MemoryError
            self._rows = <BatchRow *>rows
        self._rows[self._row_count] = row[0]
        self._row_count += 1
        self.size += row.size
        self.end_offset = row.base_offset + row.last_delta + 1
        self.end_epoch = row.leader_epoch
        return 0

    def take(self, max_records):
        """Return the next records, at most `max_records`; an empty list at the end."""
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        cdef list taken = []
        cdef int64_t position = self.position
        cdef int32_t epoch = self.last_epoch
        self._begin_call()
        try:
            while len(taken) < most and (self._reading or self._open()):
                self._take(taken, most)
                self._follow()
        except KafkaError:
            if not taken:
                raise
            self._follow_reading()
        except BaseException:
            self._seek(position, epoch)
            raise
        finally:
            self._in_use = False
        return taken

    def take_columns(self, ColumnBuilder columns not None, max_records):
        """Append the next records to columns, without deserialization, and return their number."""
        cdef Py_ssize_t most = as_int64(max_records, "max_records", 0)
        cdef Py_ssize_t taken = 0
        cdef int64_t position = self.position
        cdef int32_t epoch = self.last_epoch
        self._begin_call()
        try:
            self._reserve_batches(columns, most)
            while taken < most and (self._reading or self._open()):
                self._take_columns(columns, most, &taken)
                if self._index >= self._count:
                    columns.next_offset = max(
                        columns.next_offset, self._position,
                        self._base_offset + self._last_delta + 1,
                    )
                self._follow()
                if self._reading:
                    break  # there are `max_records`, or the columns are full
        except KafkaError:
            if not taken:
                raise
            self._follow_reading()
        except BaseException:
            self._seek(position, epoch)
            raise
        finally:
            self._in_use = False
        return taken

    cdef int _reserve_batches(self, ColumnBuilder columns, int64_t most) except -1:
        """Reserve memory for at most so many records of the batches without compression.

        Memory that grows with each batch is copied several times, and its pages are new each time.
        """
        cdef BatchRow *row
        cdef int64_t rows = 0, size = 0, i
        for i in range(self._row, self._row_count):
            row = &self._rows[i]
            if rows < most and not row.attributes & COMPRESSION_MASK:
                rows += min(row.count, row.size // MIN_RECORD_SIZE)
                size += row.size
        if rows > most:
            size, rows = size // rows * most, most
        if rows > 0:
            columns.reserve(rows, size)
        return 0

    def seek(self, offset, epoch):
        """Set the position to an offset that was reached before."""
        if self._in_use:
            raise IllegalStateError(IN_USE)
        self._seek(offset, epoch)

    cdef int _seek(self, int64_t offset, int32_t epoch) except -1:
        cdef BatchRow *row
        if self._reading and offset == self.position == self._position:
            self.last_epoch = epoch  # the batch need not be decompressed again
            return 0
        self.position, self.last_epoch = offset, epoch
        self._reading = False
        self._row = 0
        self.remaining = self.size
        while self._row < self._visited:
            row = &self._rows[self._row]
            if row.base_offset + row.last_delta >= self.position:
                break
            self.remaining -= row.size
            self._row += 1
        return 0

    def place(self):
        """Return the next offset to read, and that after its batch, for errors."""
        cdef BatchRow *row
        if self._row == self._row_count:
            return self.end_offset, self.end_offset + 1
        row = &self._rows[self._row]
        return max(self.position, row.base_offset), row.base_offset + row.last_delta + 1

    cdef bint _open(self) except -1:
        """Open the next batch that has visible records; False at the end."""
        while self._row < self._row_count:
            self._batch = None
            self._at = self._rows[self._row].at
            if self._is_visible(&self._rows[self._row]):
                self._start(&self._rows[self._row])
                return True
            self._pass()
        return False

    cdef bint _is_visible(self, BatchRow *row) except -1:
        if self._row == self._visited:
            if self._check_crcs and not self._is_valid(row):
                self._the_batch().ensure_valid()  # raises
            row.visible = row.attributes & CONTROL_FLAG == 0
            if self._hides is not None and row.producer_id >= 0 and self._hides(self._the_batch()):
                row.visible = False
            self._visited += 1
        return row.visible

    cdef bint _is_valid(self, BatchRow *row) except -1:
        checked = PyMemoryView_FromMemory(
            <char *>self._memory.at + row.at + ATTRIBUTES_AT, row.size - ATTRIBUTES_AT, PyBUF_READ
        )
        return <uint32_t>crc32c(checked) == row.crc

    cdef int _start(self, BatchRow *row) except -1:
        """Begin to read a batch; without compression its records are used where they are."""
        self._append_time = row.attributes & TIMESTAMP_TYPE_FLAG != 0
        self._timestamp_type = LOG_APPEND_TIME if self._append_time else CREATE_TIME
        self._base_offset = row.base_offset
        self._base_timestamp = row.base_timestamp
        self._max_timestamp = row.max_timestamp
        self._last_delta = row.last_delta
        self._leader_epoch = row.leader_epoch
        self._position = max(self.position, row.base_offset)
        self._stated = row.count
        self._count = row.count if self._position <= row.base_offset + row.last_delta else 0
        self._byte = self._index = 0
        self._previous = -1
        self._data = Memory(self._memory.at + row.at + OVERHEAD, row.size - OVERHEAD)
        self._loaded = (
            not row.attributes & COMPRESSION_MASK
            and 0 < row.count <= self._data.size // MIN_RECORD_SIZE
        )
        self._payload = self._window = None
        self._reading = True
        return 0

    cdef inline int _follow(self) except -1:
        """Update the position from that in the present batch."""
        if self._index >= self._count:
            self._pass()
        else:
            self.position = self._position
            self.last_epoch = self._leader_epoch
        return 0

    cdef int _follow_reading(self) except -1:
        """Update the position after an error, if records of the present batch were taken."""
        if self._reading and self._position > max(self.position, self._base_offset):
            self._follow()
        return 0

    cdef int _pass(self) except -1:
        cdef BatchRow *row = &self._rows[self._row]
        self.position = max(self.position, row.base_offset + row.last_delta + 1)
        self.last_epoch = row.leader_epoch
        self.remaining -= row.size
        self._row += 1
        self._reading = False
        self._payload = self._window = None
        return 0

# ---- columns -----------------------------------------------------------------------------------

def decode_columns(batches, start_offset=0, **options):
    """Return the records of batches of one partition as columns, without control batches."""
    from kclient.record import reference  # imported if used
    return reference.decode_columns(
        batches, start_offset, cursor_kind=BatchCursor, builder_kind=ColumnBuilder, **options
    )
