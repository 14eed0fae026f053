# cython: language_level=3, wraparound=False, embedsignature=True
"""Compiled builder of columns with the behaviour of `kclient.record.reference`, which documents it.

Memory is reserved for many records at once: a check for each field, and copies of columns that grow,
cost as much as the fields.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memset

from kclient.record._speed cimport blob_of

from kclient.common.broker_errors import RecordTooLargeError
from kclient.common.errors import InvalidArgumentError
from kclient.record.columns import BinaryColumn, Columns

cdef enum:
    DEFAULT_MAX_BYTES = 1 << 30


cdef class GrowingBuffer:
    """A bytearray that quadruples when it is full, and is trimmed at the end."""

    def __cinit__(self):
        self._data = bytearray()

    cdef int grow(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t size = max(4096, 4 * self.size, self.used + more)
        PyByteArray_Resize(self._data, size)
        self.at = <uint8_t *>PyByteArray_AS_STRING(self._data)
        self.size = size
        return 0

    cdef bytearray finish(self):
        cdef bytearray data = self._data
        PyByteArray_Resize(data, self.used)
        self._data = bytearray()
        self.size = self.used = 0
        return data


cdef class BinaryColumnBuilder:
    """Builder of one column of byte strings."""

    def __cinit__(self):
        self.offsets = GrowingBuffer()
        self.data = GrowingBuffer()
        self.validity = GrowingBuffer()
        self.offsets.ensure(4)
        (<int32_t *>self.offsets.add(4))[0] = 0

    cdef int ensure(self, Py_ssize_t rows) except -1:
        """Reserve memory for so many rows, except for their data."""
        self.offsets.ensure(4 * rows)
        self.validity.ensure(rows // 8 + 1)
        return 0

    cdef void follow(self, Py_ssize_t length, Py_ssize_t used, Py_ssize_t nulls) noexcept:
        """Take over rows that were written to the reserved memory."""
        self.length, self.nulls, self.data.used = length, nulls, used
        self.offsets.used = 4 * (length + 1)
        self.validity.used = (length + 7) // 8

    cdef int too_large(self) except -1:
        raise RecordTooLargeError("columns: got more than 2 GiB in one column")

    cdef finish(self):
        validity = self.validity.finish()
        return BinaryColumn(
            self.length, self.offsets.finish(), self.data.finish(), validity if self.nulls else None
        )


cdef class ColumnBuilder:
    """Builder of columns; records are added by `BatchCursor.take_columns`."""

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
        self._header_offsets.ensure(4)
        (<int32_t *>self._header_offsets.add(4))[0] = 0
        self.next_offset = -1

    cdef int reserve(self, Py_ssize_t rows, Py_ssize_t size) except -1:
        """Reserve memory for so many calls of `add`, and for values of `size` bytes in total."""
        self._offsets.ensure(8 * rows)
        self._timestamps.ensure(8 * rows)
        self._timestamp_types.ensure(rows)
        self._header_offsets.ensure(4 * rows)
        self._keys.ensure(rows)
        self._values.ensure(rows)
        self._values.data.ensure(min(size, self._max_bytes))
        return 0

    cdef Rows rows(self) noexcept:
        """Return the memory for the rows that `reserve` was called for, and for no others."""
        cdef Rows rows
        rows.offsets = <int64_t *>self._offsets.at
        rows.timestamps = <int64_t *>self._timestamps.at
        rows.key_ends = <int32_t *>self._keys.offsets.at + 1
        rows.value_ends = <int32_t *>self._values.offsets.at + 1
        rows.key_validity, rows.value_validity = self._keys.validity.at, self._values.validity.at
        rows.keys, rows.values = self._keys.data.at, self._values.data.at
        rows.length, rows.untimed = self.length, self._untimed
        rows.null_keys, rows.null_values = self._keys.nulls, self._values.nulls
        rows.keys_used, rows.values_used = self._keys.data.used, self._values.data.used
        rows.keys_size, rows.values_size = self._keys.data.size, self._values.data.size
        rows.least_used = max(self._header_keys.data.used, self._header_values.data.used)
        rows.most_used = self._max_bytes
        return rows

    cdef void follow(self, Rows *rows, bint append_time) noexcept:
        """Take over the rows that were added to the memory, and fill their constant columns."""
        cdef Py_ssize_t more = rows.length - self.length
        cdef int32_t *header_ends = <int32_t *>self._header_offsets.add(4 * more)
        cdef Py_ssize_t i
        if more == 0:
            return
        for i in range(more):
            header_ends[i] = <int32_t>self._header_keys.length
        memset(self._timestamp_types.add(more), append_time, more)
        self._offsets.used = self._timestamps.used = 8 * rows.length
        self._keys.follow(rows.length, rows.keys_used, rows.null_keys)
        self._values.follow(rows.length, rows.values_used, rows.null_values)
        self._untimed = rows.untimed
        self.length = rows.length
        self.next_offset = rows.offsets[rows.length - 1] + 1

    cdef int add_headers(self, list headers) except -1:
        """Add the headers of the record that follows."""
        cdef bytes encoded
        self._header_keys.ensure(len(headers))
        self._header_values.ensure(len(headers))
        for name, value in headers:
            encoded = name.encode()
            self._header_keys.add(blob_of(encoded))
            self._header_values.add(blob_of(value))
        return 0

    def finish(self):
        """Return the columns; the builder must not be used afterwards."""
        return Columns(
            self.length, self.next_offset, self._offsets.finish(), self._timestamps.finish(),
            self._timestamp_types.finish(), self._untimed, self._keys.finish(), self._values.finish(),
            self._header_offsets.finish(), self._header_keys.finish(), self._header_values.finish(),
        )
