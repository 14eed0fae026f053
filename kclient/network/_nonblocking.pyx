# cython: language_level=3, wraparound=False, boundscheck=False, binding=True
# cython: freethreading_compatible=True
"""System calls of non-blocking descriptors that keep the interpreter's lock (GIL) if they are short.

The functions of `os`, `socket` and `select` release the lock in each call. If another thread of the
application computes, it acquires the lock then and keeps it for the switch interval of 5 ms, while
copying 64 KiB takes 20 microseconds: a request of a producer waited four times. These functions
never block, so that they may keep the lock. Large transfers release it: the kernel copies them
while another thread runs.

Each call has its own state. After a signal interrupted a call, the signal's handler runs. Then a
transfer is repeated, as in the standard library (PEP 475), with the descriptor that the stream has
then. Errors are the `OSError` of `errno`.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint32_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

import os

cdef extern from "unistd.h":
    ssize_t c_read "read" (int, void *, size_t)

cdef extern from "sys/uio.h":
    cdef struct iovec:
        void *iov_base
        size_t iov_len

cdef extern from "sys/socket.h":
    cdef struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    ssize_t c_sendmsg "sendmsg" (int, const msghdr *, int) nogil
    ssize_t c_recv "recv" (int, void *, size_t, int) nogil
    enum: MSG_DONTWAIT
    enum: MSG_NOSIGNAL

cdef extern from "sys/epoll.h":
    ctypedef union epoll_data_t:
        int fd
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_wait(int, epoll_event *, int, int) nogil
    enum: EPOLLIN
    enum: EPOLLOUT

cdef enum:
    SHORT = 128 * 1024  # bytes of the largest transfer that keeps the lock
    MAX_PARTS = 64
    MAX_EVENTS = 128
    READABLE = 1
    WRITABLE = 2


def sendmsg(stream, buffers):
    """Write from the first buffers, in order; return the number of bytes written."""
    cdef Py_buffer views[MAX_PARTS]
    cdef iovec parts[MAX_PARTS]
    cdef msghdr message
    cdef size_t total = 0
    cdef ssize_t sent
    cdef int descriptor
    cdef int failure
    cdef int count = 0
    memset(&message, 0, sizeof(message))
    try:
        for buffer in buffers:
            if count == MAX_PARTS:
                break
            PyObject_GetBuffer(buffer, &views[count], PyBUF_SIMPLE)
            parts[count] = iovec(views[count].buf, views[count].len)
            total += views[count].len
            count += 1
        message.msg_iov = parts
        message.msg_iovlen = count
        while True:
            descriptor = stream.fileno()  # each time: a signal's handler may close the stream
            if total <= SHORT:
                sent = c_sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                failure = errno
            else:
                with nogil:
                    sent = c_sendmsg(descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
                    failure = errno
            if sent >= 0:
                return sent
            raise_unless_interrupted(failure)
    finally:
        while count:
            count -= 1
            PyBuffer_Release(&views[count])


def recv_into(stream, buffer):
    """Read into `buffer`; return the number of bytes, 0 if the peer closed its side."""
    cdef Py_buffer view
    cdef ssize_t received
    cdef int descriptor
    cdef int failure
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        while True:
            descriptor = stream.fileno()  # as in `sendmsg`
            if view.len <= SHORT:
                received = c_recv(descriptor, view.buf, view.len, MSG_DONTWAIT)
                failure = errno
            else:
                with nogil:
                    received = c_recv(descriptor, view.buf, view.len, MSG_DONTWAIT)
                    failure = errno
            if received >= 0:
                return received
            raise_unless_interrupted(failure)
    finally:
        PyBuffer_Release(&view)


def discard(int descriptor):
    """Read what a non-blocking descriptor holds."""
    cdef char received[4096]
    cdef ssize_t count = sizeof(received)
    while count == sizeof(received):
        count = c_read(descriptor, received, sizeof(received))
        if count < 0:
            # Not repeated after a signal: its handler may close the descriptor.
            raise_unless_interrupted(errno)


def ready(int epoll):
    """Return the descriptors that are ready now, with their READABLE and WRITABLE events.

    An error and the end of a connection are reported as both, as by `selectors`.
    """
    cdef epoll_event events[MAX_EVENTS]
    cdef int count = epoll_wait(epoll, events, MAX_EVENTS, 0)
    if count < 0:
        raise_unless_interrupted(errno)  # not repeated, as in `discard`
    return described(events, count)


def wait(int epoll, int timeout_ms, long long spin_ns):
    """Return what `ready` does, after a wait of at most `timeout_ms`, and the ns that passed.

    -1 waits without limit. It releases the lock only if nothing is ready. It first asks again and
    again for `spin_ns`, in which the processor does not become idle. A signal ends the wait after
    its handler.
    """
    cdef epoll_event events[MAX_EVENTS]
    cdef int count = epoll_wait(epoll, events, MAX_EVENTS, 0)
    cdef int failure = errno
    cdef long long began_ns, took_ns = 0
    if count == 0:
        began_ns = now_ns()
        if spin_ns:
            with nogil:
                while count == 0 and now_ns() - began_ns < spin_ns:
                    count = epoll_wait(epoll, events, MAX_EVENTS, 0)
                    failure = errno
            if count == 0:
                PyErr_CheckSignals()  # one that came meanwhile does not end the next call
        if count == 0:
            with nogil:
                count = epoll_wait(epoll, events, MAX_EVENTS, timeout_ms)
                failure = errno
        took_ns = now_ns() - began_ns
    if count < 0:
        raise_unless_interrupted(failure)
    return described(events, count), took_ns


cdef long long now_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1_000_000_000LL + now.tv_nsec


cdef list described(epoll_event *events, int count):
    """Return descriptors with their READABLE and WRITABLE events."""
    cdef uint32_t seen
    cdef int i
    cdef list found = []
    for i in range(count):
        seen = events[i].events
        found.append((
            events[i].data.fd,
            (READABLE if seen & ~<uint32_t>EPOLLOUT else 0)
            | (WRITABLE if seen & ~<uint32_t>EPOLLIN else 0),
        ))
    return found


cdef int raise_unless_interrupted(int failure) except -1:
    """Raise an `OSError`, or after EINTR what the signal's handler raises, if anything."""
    if failure == EINTR:
        PyErr_CheckSignals()
        return 0
    raise OSError(failure, os.strerror(failure))
