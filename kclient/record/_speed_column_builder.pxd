"""Column builder, with the methods for each record written out for calls from `_speed_reading.pyx`."""

cimport cython
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kclient.record._speed cimport Blob


@cython.final
cdef class GrowingBuffer:
    cdef bytearray _data
    cdef uint8_t *at
    cdef Py_ssize_t used, size

    cdef inline int ensure(self, Py_ssize_t more) except -1:
        """Reserve `more` bytes for calls of `add`."""
        if self.used + more > self.size:
            self.grow(more)
        return 0

    cdef inline uint8_t *add(self, Py_ssize_t more) noexcept:
        """Use the next `more` bytes, which are reserved, and return their address."""
        self.used += more
        return self.at + (self.used - more)

    cdef int grow(self, Py_ssize_t more) except -1
    cdef bytearray finish(self)


@cython.final
cdef class BinaryColumnBuilder:
    cdef GrowingBuffer offsets, data, validity
    cdef Py_ssize_t length, nulls

    cdef inline int add(self, Blob blob) except -1:
        """Add a row, for which `ensure` has reserved memory."""
        if blob.size > 0:
            self.data.ensure(blob.size)
            memcpy(self.data.add(blob.size), blob.at, blob.size)
            if self.data.used > INT32_MAX:
                self.too_large()
        (<int32_t *>self.offsets.add(4))[0] = <int32_t>self.data.used
        if self.length & 7 == 0:
            self.validity.add(1)[0] = 0
        if blob.at != NULL:
            self.validity.at[self.length >> 3] |= 1 << (self.length & 7)
        else:
            self.nulls += 1
        self.length += 1
        return 0

    cdef int ensure(self, Py_ssize_t rows) except -1
    cdef void follow(self, Py_ssize_t length, Py_ssize_t used, Py_ssize_t nulls) noexcept
    cdef int too_large(self) except -1
    cdef finish(self)


cdef struct Rows:
    int64_t *offsets  # of the first row, as all of these
    int64_t *timestamps
    int32_t *key_ends
    int32_t *value_ends
    uint8_t *key_validity
    uint8_t *value_validity
    uint8_t *keys
    uint8_t *values
    Py_ssize_t length, untimed, null_keys, null_values
    Py_ssize_t keys_used, values_used, keys_size, values_size
    Py_ssize_t least_used, most_used  # the bytes of headers, and the limit of all columns

cdef inline void add_bytes(
    Blob blob, Py_ssize_t row, uint8_t *data, Py_ssize_t *used, uint8_t *validity, Py_ssize_t *nulls,
) noexcept nogil:
    if row & 7 == 0:
        validity[row >> 3] = 0
    if blob.at == NULL:
        nulls[0] += 1
        return
    validity[row >> 3] |= 1 << (row & 7)
    memcpy(data + used[0], blob.at, blob.size)
    used[0] += blob.size

cdef inline bint add_row(
    Rows *to, Py_ssize_t size, int64_t offset, int64_t timestamp, Blob key, Blob value
) noexcept nogil:
    """Add a record of `size` bytes without headers; False if there is not enough memory for it."""
    cdef Py_ssize_t row = to.length
    if (
        key.size > to.keys_size - to.keys_used
        or value.size > to.values_size - to.values_used
        or max(to.least_used, to.keys_used, to.values_used) > to.most_used - size
    ):
        return False
    to.offsets[row] = offset
    to.timestamps[row] = timestamp
    to.untimed += timestamp < 0
    add_bytes(key, row, to.keys, &to.keys_used, to.key_validity, &to.null_keys)
    add_bytes(value, row, to.values, &to.values_used, to.value_validity, &to.null_values)
    to.key_ends[row] = <int32_t>to.keys_used
    to.value_ends[row] = <int32_t>to.values_used
    to.length = row + 1
    return True


@cython.final
cdef class ColumnBuilder:
    cdef GrowingBuffer _offsets, _timestamps, _timestamp_types, _header_offsets
    cdef BinaryColumnBuilder _keys, _values, _header_keys, _header_values
    cdef Py_ssize_t _max_bytes, _untimed
    cdef readonly Py_ssize_t length
    cdef public int64_t next_offset

    cdef inline bint has_capacity(self, Py_ssize_t size) noexcept:
        """Return whether a record of `size` bytes fits; the first one always does."""
        cdef Py_ssize_t used = max(
            self._keys.data.used, self._values.data.used, self._header_keys.data.used,
            self._header_values.data.used,
        )
        return used + size <= self._max_bytes or self.length == 0

    cdef inline int add(
        self, int64_t offset, bint append_time, int64_t timestamp, Blob key, Blob value
    ) except -1:
        """Add a record, for which `reserve` has reserved memory, after `add_headers`."""
        (<int64_t *>self._offsets.add(8))[0] = offset
        (<int64_t *>self._timestamps.add(8))[0] = timestamp
        self._timestamp_types.add(1)[0] = append_time
        self._untimed += timestamp < 0
        self._keys.add(key)
        self._values.add(value)
        (<int32_t *>self._header_offsets.add(4))[0] = <int32_t>self._header_keys.length
        self.length += 1
        self.next_offset = offset + 1
        return 0

    cdef Rows rows(self) noexcept
    cdef void follow(self, Rows *rows, bint append_time) noexcept
    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1
    cdef int add_headers(self, list headers) except -1
