"""Declarations for calls from other compiled modules without Python overhead."""

cimport cython
from cpython.buffer cimport Py_buffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    Py_buffer *PyMemoryView_GET_BUFFER(object)

ctypedef const uint8_t *Place

cdef struct Memory:
    uint8_t *at
    Py_ssize_t size

cdef struct Blob:
    Place at  # NULL for null
    int64_t size

cdef inline Memory memory_of(object view) noexcept:
    """Return the memory of a memoryview of bytes; the caller must keep the view alive.

    The view prevents the memory from being freed, moved or resized.
    """
    return Memory(<uint8_t *>PyMemoryView_GET_BUFFER(view).buf, PyMemoryView_GET_BUFFER(view).len)

cdef inline Blob blob_of(object data) noexcept:
    """Return the memory of bytes, which the caller must keep alive, or null for None."""
    cdef Blob blob = Blob(NULL, -1)
    if data is not None:
        blob.at = <Place>PyBytes_AS_STRING(data)
        blob.size = PyBytes_GET_SIZE(data)
    return blob

cdef inline int64_t as_int64(object value, str what, int64_t least) except -2:
    """Return an integer of at least `least`, which is -1 or more."""
    cdef int overflow = 0
    cdef int64_t number
    if isinstance(value, int):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow and number >= least:
            return number
    from kclient.record.record_encoder import int64_error
    raise int64_error(value, what, least)

cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while rest >= 0x80:
        rest >>= 7
        size += 1
    return size

cdef inline uint8_t *put_varint(uint8_t *at, int64_t value) noexcept nogil:
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while rest >= 0x80:
        at[0] = <uint8_t>(rest | 0x80)
        at += 1
        rest >>= 7
    at[0] = <uint8_t>rest
    return at + 1

cdef inline int64_t blob_size(Blob blob) noexcept nogil:
    return varint_size(blob.size) + (blob.size if blob.size > 0 else 0)

cdef inline uint8_t *put_blob(uint8_t *at, Blob blob) noexcept nogil:
    at = put_varint(at, blob.size)
    if blob.size > 0:
        memcpy(at, blob.at, blob.size)
        at += blob.size
    return at

cdef int64_t as_timestamp(object value) except -2
cdef bytes pack_headers(object headers)
cpdef int32_t murmur2(object data) except? -1
cdef int32_t murmur2_of(Blob data) noexcept nogil


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
        self, int64_t timestamp, object key, object value, bytes headers
    ) except -2
    cdef int _write_header(
        self, Memory batch, int16_t attributes, int32_t partition_leader_epoch,
        int64_t producer_id, int16_t producer_epoch, int32_t base_sequence,
    ) except -1
    cdef int _write_to(self, object buffer) except -1
    cdef tuple _mark(self)
    cdef _restore(self, tuple mark)
    cdef int64_t _append(
        self, int64_t delta, int64_t timestamp, Blob key, Blob value, Blob tail
    ) except -2
