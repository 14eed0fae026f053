"""What other compiled modules may call without going through Python."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

ctypedef const uint8_t *Place

cdef struct Memory:
    uint8_t *at
    Py_ssize_t size

cdef struct Blob:
    Place at  # NULL stands for null
    int64_t size

cpdef int32_t murmur2(object data) except? -1


@cython.final
cdef class RecordBatchBuilder:
    cdef readonly object buffer
    cdef object _sealed, _view
    cdef Memory _memory
    cdef Py_ssize_t _end
    cdef readonly int32_t record_count
    cdef int64_t _last_delta
    cdef readonly int64_t base_offset, first_timestamp, max_timestamp, largest_record

    cdef int64_t append_next(
        self, object timestamp_ms, object key, object value, object headers
    ) except -2
    cdef int _write_to(self, object buffer) except -1
    cdef int64_t _append_objects(
        self, int64_t delta, object timestamp_ms, object key, object value, object headers
    ) except -2
    cdef tuple _mark(self)
    cdef _restore(self, tuple mark)
    cdef int64_t _append(
        self, int64_t delta, int64_t timestamp, Blob key, Blob value, bytes tail
    ) except -2
