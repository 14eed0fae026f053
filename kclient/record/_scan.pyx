# cython: language_level=3, wraparound=False, boundscheck=False, embedsignature=True
# cython: freethreading_compatible=True
"""Compiled scan of many batches, documented in `kclient.record.reference.batch_scan`."""

import array

from cpython cimport array
from cpython.buffer cimport (
    PyBUF_READ, PyBUF_SIMPLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc

from kclient.record import batch_columns
from kclient.record.batch_columns import BatchColumns, ScanLimits
from kclient.record.checksum import crc32c

cdef enum:
    OVERHEAD = 61
    LOG_OVERHEAD = 12
    MAGIC = 2
    ATTRIBUTES_AT = 21
    CONTROL_FLAG = 0x20
    COLUMNS = 13

ctypedef const uint8_t *Place

cdef array.array INTEGERS = array.array("q")
cdef object NO_LIMITS = ScanLimits()

cdef struct BatchRow:
    int64_t position, size, base_offset, last_offset, leader_epoch, crc, attributes
    int64_t base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count

cdef inline uint64_t big_endian(Place at, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | at[i]
    return value

cdef inline int32_t int32_at(Place at) noexcept nogil:
    return <int32_t>big_endian(at, 4)

cdef inline int64_t int64_at(Place at) noexcept nogil:
    return <int64_t>big_endian(at, 8)

cdef inline void read_row(Place at, int64_t position, BatchRow *row) noexcept nogil:
    row.position = position
    row.base_offset = int64_at(at)
    row.size = <int64_t>int32_at(at + 8) + LOG_OVERHEAD
    row.leader_epoch = int32_at(at + 12)
    row.crc = <int64_t>big_endian(at + 17, 4)
    row.attributes = <int16_t>big_endian(at + 21, 2)
    # Unsigned, since the sum may overflow if the fields are invalid.
    row.last_offset = <int64_t>(<uint64_t>row.base_offset + <uint64_t>int32_at(at + 23))
    row.base_timestamp = int64_at(at + 27)
    row.max_timestamp = int64_at(at + 35)
    row.producer_id = int64_at(at + 43)
    row.producer_epoch = <int16_t>big_endian(at + 51, 2)
    row.base_sequence = int32_at(at + 53)
    row.count = int32_at(at + 57)


cdef class BatchScan:
    """One pass over a buffer; the reference formats the error messages."""
    cdef object _view
    cdef Py_buffer _memory
    cdef int64_t _position, _length, _next_offset, _last_offset, _max_batch_size
    cdef bint _verify
    cdef BatchRow *_rows
    cdef Py_ssize_t _count, _capacity

    def __cinit__(self, buffer, int64_t position, object length, limits, bint verify):
        self._view = memoryview(buffer).cast("B")
        PyObject_GetBuffer(self._view, &self._memory, PyBUF_SIMPLE)
        self._position = position
        self._length = self._memory.len if length is None else length
        self._next_offset, self._last_offset, self._max_batch_size = limits
        self._verify = verify

    def __dealloc__(self):
        free(self._rows)
        PyBuffer_Release(&self._memory)

    cdef object run(self):
        cdef int64_t at = 0, wanted = OVERHEAD
        cdef int64_t last_start = min(<int64_t>self._memory.len, self._length) - OVERHEAD
        cdef BatchRow row
        cdef object problem = None
        while at <= last_start:
            read_row(self._at(at), self._position + at, &row)
            if self._has_framing_problem(at, &row):
                problem = batch_columns.framing_problem(self._view, at, self._limits())
            elif row.size > self._length - at:
                wanted = row.size
                break
            elif self._has_offset_problem(at, &row):
                problem = batch_columns.offset_problem(self._view, at, self._limits())
            elif self._verify and self._has_content_problem(at, &row):
                problem = batch_columns.content_problem(self._view[at:at + row.size])
            if problem is not None:
                break
            self._add(&row)
            self._next_offset = row.last_offset + 1
            at += row.size
        return self._columns(at, wanted, problem)

    cdef inline Place _at(self, int64_t at) noexcept:
        return <Place>self._memory.buf + at

    cdef inline int _add(self, BatchRow *row) except -1:
        if self._count == self._capacity:
            self._grow()
        self._rows[self._count] = row[0]
        self._count += 1
        return 0

    cdef int _grow(self) except -1:
        cdef Py_ssize_t capacity = max(64, 4 * self._capacity)
        cdef void *rows = realloc(self._rows, capacity * sizeof(BatchRow))
        if rows == NULL:
            raise MemoryError
        self._rows = <BatchRow *>rows
        self._capacity = capacity
        return 0

    cdef object _limits(self):
        return ScanLimits(self._next_offset, self._last_offset, self._max_batch_size)

    cdef inline bint _has_framing_problem(self, int64_t at, BatchRow *row) noexcept:
        return (
            row.size < OVERHEAD or row.size > self._max_batch_size
            or <int8_t>self._at(at)[16] != MAGIC
        )

    cdef inline bint _has_offset_problem(self, int64_t at, BatchRow *row) noexcept:
        cdef int64_t delta = int32_at(self._at(at) + 23)
        # Subtracted, since the sum of base offset and delta may overflow.
        return (
            delta < 0 or row.base_offset < self._next_offset
            or row.base_offset > self._last_offset - delta
        )

    cdef inline bint _has_content_problem(self, int64_t at, BatchRow *row) except -1:
        if row.count < 0 or row.count > row.last_offset - row.base_offset + 1:
            return True
        checked = PyMemoryView_FromMemory(
            <char *>self._at(at) + ATTRIBUTES_AT, row.size - ATTRIBUTES_AT, PyBUF_READ
        )
        return <int64_t>crc32c(checked) != row.crc

    cdef object _columns(self, int64_t at, int64_t wanted, object problem):
        cdef array.array column
        cdef const int64_t *rows = <const int64_t *>self._rows
        cdef Py_ssize_t i, number
        cdef list columns = []
        for number in range(COLUMNS):
            column = array.clone(INTEGERS, self._count, False)
            for i in range(self._count):
                column.data.as_longlongs[i] = rows[i * COLUMNS + number]
            columns.append(column)
        column = array.clone(INTEGERS, 0, False)
        for i in range(self._count):
            if rows[i * COLUMNS + 6] & CONTROL_FLAG:
                column.append(i)
        return BatchColumns(*columns, column, self._position + at, wanted, problem)

def scan_batches(buffer, position=0, limits=NO_LIMITS):
    """Return the headers of the valid batches at the start of a buffer; checksums are verified."""
    return BatchScan(buffer, position, None, limits, True).run()

def scan_headers(buffer, position, end, limits=NO_LIMITS):
    """Return the headers of the batches that start in a buffer; checksums are not verified."""
    return BatchScan(buffer, position, end - position, limits, False).run()
