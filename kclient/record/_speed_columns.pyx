# cython: language_level=3, wraparound=False, embedsignature=True
"""Compiled append of columns to batches, with the behaviour of `kclient.record.reference`.

The caller owns the memory of columns and may modify it: offsets are checked at every use.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t

from kclient.record._speed cimport (
    Blob, Memory, Place, RecordBatchBuilder, blob_size, memory_of, murmur2_of, put_blob, put_varint,
    varint_size,
)

from kclient.common.errors import InvalidArgumentError
from kclient.record import record_encoder

cdef enum:
    MAX_RECORD_OVERHEAD = 21
    MAX_LENGTHS = 10
    MAX_VARINT = 10

cdef const char *NO_HEADERS = b"\x00"

cdef object exceeds(str what, int64_t row):
    return InvalidArgumentError(f"{what}: row {row} exceeds the data of its column")


cdef class OffsetReader:
    """Base class of readers of binary and list arrays: range of each row."""
    cdef object _offsets_view, _validity_view
    cdef Memory _offsets, _validity
    cdef readonly int64_t length
    cdef int64_t _first, _most
    cdef bint _wide, _has_nulls

    def __cinit__(self, column):
        self._wide = column.wide
        self._first = column.first
        self.length = column.length
        self._offsets_view = memoryview(column.offsets).cast("B")
        self._offsets = memory_of(self._offsets_view)
        self._has_nulls = column.validity is not None
        self._validity_view = memoryview(column.validity if self._has_nulls else b"").cast("B")
        self._validity = memory_of(self._validity_view)
        cdef int64_t capacity = self._offsets.size // (8 if self._wide else 4) - 1
        if self._has_nulls:
            capacity = min(capacity, self._validity.size * 8)
        if min(self._first, self.length) < 0 or self.length > capacity - self._first:
            raise InvalidArgumentError("column: its buffers are too short for its length")

    cdef inline bint is_null(self, int64_t at) noexcept nogil:
        return self._has_nulls and not self._validity.at[at >> 3] >> (at & 7) & 1

    cdef inline bint find(self, int64_t at, int64_t *start, int64_t *end) noexcept nogil:
        """Find the range of a row of the buffers; False if it exceeds the data."""
        if self._wide:
            start[0] = (<const int64_t *>self._offsets.at)[at]
            end[0] = (<const int64_t *>self._offsets.at)[at + 1]
        else:
            start[0] = (<const int32_t *>self._offsets.at)[at]
            end[0] = (<const int32_t *>self._offsets.at)[at + 1]
        return 0 <= start[0] <= end[0] <= self._most


cdef class ColumnReader(OffsetReader):
    """Reader of a `BinaryColumn`."""
    cdef object _data_view
    cdef Place _data

    def __cinit__(self, column):
        self._data_view = memoryview(column.data).cast("B")
        self._data = memory_of(self._data_view).at
        self._most = memory_of(self._data_view).size

    cdef inline bint read(self, int64_t row, Blob *out) noexcept nogil:
        """Read an existing row; False if it exceeds the data."""
        cdef int64_t at = self._first + row
        cdef int64_t start = 0
        cdef int64_t end = 0
        out[0] = Blob(NULL, -1)
        if self.is_null(at):
            return True
        if not self.find(at, &start, &end):
            return False
        out[0] = Blob(self._data + start, end - start)
        return True


cdef class HeaderReader(OffsetReader):
    """Reader of a `HeaderColumn`, which encodes rows in the record format."""
    cdef ColumnReader _keys, _values
    cdef bytearray _scratch
    cdef uint8_t *_at
    cdef Py_ssize_t _used, _size

    def __cinit__(self, column):
        self._keys = ColumnReader(column.keys)
        self._values = ColumnReader(column.values)
        self._most = self._keys.length
        self._scratch = bytearray()
        if self._keys.length != self._values.length:
            raise InvalidArgumentError("column: its header keys and values differ in number")

    cdef inline int range_of(self, int64_t row, int64_t shown, int64_t *start, int64_t *end) except -1:
        start[0] = end[0] = 0
        if not self.is_null(self._first + row) and not self.find(self._first + row, start, end):
            raise exceeds("headers", shown)
        return 0

    cdef inline int read(self, int64_t header, int64_t shown, Blob *key, Blob *value) except -1:
        if not (self._keys.read(header, key) and self._values.read(header, value)):
            raise exceeds("headers", shown)
        if key.at == NULL:
            raise InvalidArgumentError(f"headers: row {shown} has a header without a name")
        return 0

    cdef int64_t size(self, int64_t row, int64_t shown) except -1:
        """Return the encoded size of a row's headers, and check their names."""
        cdef int64_t start, end, header, size
        cdef Blob key, value
        self.range_of(row, shown, &start, &end)
        size = varint_size(end - start)
        for header in range(start, end):
            self.read(header, shown, &key, &value)
            check_name(key, shown)
            size += blob_size(key) + blob_size(value)
        return size

    cdef int encode(self, int64_t row, Blob *out) except -1:
        """Encode a row's headers into memory that the next call overwrites."""
        cdef int64_t start, end, header
        cdef Blob key, value
        self.range_of(row, row, &start, &end)
        self._used = 0
        self._used = put_varint(self.reserve(MAX_VARINT), end - start) - self._at
        for header in range(start, end):
            self.read(header, row, &key, &value)
            self._used = put_blob(self.reserve(MAX_VARINT + key.size), key) - self._at
            self._used = put_blob(self.reserve(MAX_VARINT + max(value.size, 0)), value) - self._at
        out[0] = Blob(self._at, self._used)
        return 0

    cdef inline uint8_t *reserve(self, int64_t more) except NULL:
        if self._used + more > self._size:
            self._size = max(256, 2 * (self._used + more))
            PyByteArray_Resize(self._scratch, self._size)
            self._at = <uint8_t *>PyByteArray_AS_STRING(self._scratch)
        return self._at + self._used


cdef int check_name(Blob name, int64_t row) except -1:
    cdef int64_t i
    for i in range(name.size):
        if name.at[i] >= 0x80:
            break
    else:
        return 0
    try:
        PyUnicode_DecodeUTF8(<const char *>name.at, name.size, NULL)
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            f"headers: row {row} has a header whose name is not UTF-8"
        ) from None
    return 0


cdef class RecordColumns:
    """Rows of columns to be appended as records."""
    cdef ColumnReader _keys, _values
    cdef HeaderReader _headers
    cdef object _timestamps_view
    cdef const int64_t *_timestamps  # NULL if all rows have the same
    cdef int64_t _timestamp
    cdef readonly int64_t length

    def __cinit__(self, timestamps_ms, keys, values, headers=None):
        cdef int64_t times = -1
        if isinstance(timestamps_ms, int):
            self._timestamp = record_encoder.check_timestamp(timestamps_ms)
        else:
            self._timestamps_view = memoryview(timestamps_ms).cast("B").cast("q")
            self._timestamps = <const int64_t *>memory_of(self._timestamps_view).at
            times = len(self._timestamps_view)
        self._values = ColumnReader(values)
        self._keys = None if keys is None else ColumnReader(keys)
        self._headers = None if headers is None else HeaderReader(headers)
        self.length = self._values.length
        for name, length in (
            ("timestamps_ms", None if isinstance(timestamps_ms, int) else times),
            ("keys", None if keys is None else self._keys.length),
            ("headers", None if headers is None else self._headers.length),
        ):
            if length is not None and length != self.length:
                raise InvalidArgumentError(
                    f"{name}: got {length} rows, expected {self.length}, one for each value"
                )

    cdef inline int _read(
        self, int64_t row, int64_t shown, int64_t *timestamp, Blob *key, Blob *value
    ) except -1:
        timestamp[0] = self._timestamp if self._timestamps == NULL else self._timestamps[row]
        if timestamp[0] < -1:
            record_encoder.check_timestamp(timestamp[0])  # raises
        key[0] = Blob(NULL, -1)
        if self._keys is not None and not self._keys.read(row, key):
            raise exceeds("key", shown)
        if not self._values.read(row, value):
            raise exceeds("value", shown)
        return 0

    cdef int64_t _size_upper_bound(self, int64_t row, int64_t shown) except -1:
        cdef int64_t timestamp
        cdef Blob key, value
        self._read(row, shown, &timestamp, &key, &value)
        return (
            MAX_RECORD_OVERHEAD + MAX_LENGTHS + max(key.size, 0) + max(value.size, 0)
            + (1 if self._headers is None else self._headers.size(row, shown))
        )

    def check(self, max_size, first_row=0):
        """Check that every row is a valid record, and return the first that is too large, or -1."""
        cdef int64_t most = max_size
        cdef int64_t first = first_row
        cdef int64_t row
        for row in range(self.length):
            if self._size_upper_bound(row, first + row) > most:
                return row
        return -1

    def size_upper_bound(self, row):
        """Return an upper bound of the size of a row's record, as `record_size_upper_bound`."""
        self._check_row(row)
        return self._size_upper_bound(row, row)

    cdef inline int _check_row(self, int64_t row) except -1:
        if not 0 <= row < self.length:
            raise InvalidArgumentError(f"row: got {row}, expected 0 to {self.length - 1}")
        return 0

    def rows_by_partition(self, int32_t partition_count, chosen, start, stop, *, bint by_key):
        """Group rows by partition, in their order."""
        cdef object given_view = memoryview(b"" if chosen is None else chosen).cast("B").cast("i")
        cdef const int32_t *given = NULL
        if chosen is not None:
            given = <const int32_t *>memory_of(given_view).at
        if not 0 <= start <= stop <= self.length or (
            chosen is not None and len(given_view) != self.length
        ):
            raise InvalidArgumentError(f"rows: got {start} to {stop}, expected 0 to {self.length}")
        cdef int64_t first = start
        cdef int64_t count = stop - start
        cdef bytearray assigned = bytearray(4 * count)
        cdef bytearray counts = bytearray(8 * (max(partition_count, 0) + 2))
        self._assign(
            first, count, partition_count, given, by_key,
            <int32_t *>PyByteArray_AS_STRING(assigned), <int64_t *>PyByteArray_AS_STRING(counts),
        )
        return grouped(first, count, partition_count, assigned, counts)

    cdef int _assign(
        self, int64_t first, int64_t count, int32_t partition_count, const int32_t *given,
        bint by_key, int32_t *assigned, int64_t *counts,
    ) except -1:
        """Determine each row's partition, and the row counts; counts[0] is for no partition."""
        cdef int64_t i
        cdef int32_t partition
        cdef Blob key
        by_key = by_key and self._keys is not None
        for i in range(count):
            partition = -1
            if given != NULL and given[first + i] >= 0:
                partition = given[first + i]
            elif by_key:
                if not self._keys.read(first + i, &key):
                    raise exceeds("key", first + i)
                if key.at != NULL:
                    partition = (murmur2_of(key) & 0x7FFFFFFF) % partition_count
            if partition >= partition_count:
                raise InvalidArgumentError(
                    f"partition: got {partition}, expected 0 to {partition_count - 1}"
                )
            assigned[i] = partition
            counts[partition + 1] += 1
        return 0

    def append_to(self, RecordBatchBuilder builder not None, rows, start):
        """Append rows to a batch, as many as fit; return their number."""
        cdef object rows_view = memoryview(b"" if rows is None else rows).cast("B").cast("q")
        cdef const int64_t *chosen = NULL
        cdef int64_t count = self.length
        if rows is not None:
            chosen = <const int64_t *>memory_of(rows_view).at
            count = len(rows_view)
        if not 0 <= start <= count:
            raise InvalidArgumentError(f"start: got {start}, expected 0 to {count}")
        return self._append_to(builder, chosen, count, start)

    cdef int64_t _append_to(
        self, RecordBatchBuilder builder, const int64_t *chosen, int64_t count, int64_t start
    ) except -1:
        cdef int64_t place = start
        cdef int64_t row, timestamp
        cdef Blob key, value
        cdef Blob tail = Blob(<Place>NO_HEADERS, 1)
        while place < count:
            row = place
            if chosen != NULL:
                row = chosen[place]
                self._check_row(row)
            self._read(row, row, &timestamp, &key, &value)
            if self._headers is not None:
                self._headers.encode(row, &tail)
            if builder._append(builder._last_delta + 1, timestamp, key, value, tail) < 0:
                break
            place += 1
        return place - start


cdef list grouped(
    int64_t first, int64_t count, int32_t partition_count, bytearray assigned, bytearray counts
):
    """Return (partition, rows) for each partition that has any, by a stable counting sort."""
    cdef const int32_t *assigned_at = <const int32_t *>PyByteArray_AS_STRING(assigned)
    cdef int64_t *next_at = <int64_t *>PyByteArray_AS_STRING(counts)
    cdef bytearray order = bytearray(8 * count)
    cdef int64_t *order_at = <int64_t *>PyByteArray_AS_STRING(order)
    cdef int64_t i, size
    cdef int64_t begin = 0
    cdef list groups = []
    whole = memoryview(order)
    for i in range(partition_count + 1):
        size = next_at[i]
        if size:
            groups.append((i - 1, whole[8 * begin:8 * (begin + size)]))
        next_at[i] = begin
        begin += size
    for i in range(count):
        order_at[next_at[assigned_at[i] + 1]] = first + i
        next_at[assigned_at[i] + 1] += 1
    return groups
