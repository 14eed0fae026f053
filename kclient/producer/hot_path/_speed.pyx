# cython: language_level=3, wraparound=False, embedsignature=True, annotation_typing=False
"""Compiled hot path, with the behaviour of `kclient.producer.hot_path.reference`.

Appends hold the lock of the queue: the code does not rely on the interpreter's lock.
"""

cimport cython
from cpython.long cimport PyLong_AsLongLong, PyLong_AsLongLongAndOverflow
from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport INT64_MAX, int32_t, int64_t

from kclient.record._speed cimport RecordBatchBuilder, as_timestamp, murmur2, pack_headers

from threading import RLock
from time import time_ns
from types import GenericAlias

from kclient.common.errors import ClosedError
from kclient.common.foreign_names import refuse_keywords
from kclient.producer.foreign_names import SEND
from kclient.producer.hot_path import reference
from kclient.producer.send_arguments import check_on_delivery

cdef extern from *:
    """
    #include <time.h>

    static CYTHON_INLINE PyObject *new_instance(PyObject *kind, PyObject *no_arguments) {
        return ((PyTypeObject *)kind)->tp_new((PyTypeObject *)kind, no_arguments, NULL);
    }

    /* Classes of Python code have collected instances, also if their base has not. Without the
       collector's header an instance is 16 bytes smaller, and its allocation starts no collection.
       For a class that was just created, and has no instances yet; one that adds slots, a dict or
       weak references stays collected. */
    static void set_not_collected(PyObject *class_object) {
        PyTypeObject *kind = (PyTypeObject *)class_object;
        if (PyType_HasFeature(kind, Py_TPFLAGS_HAVE_GC)
            && !PyType_HasFeature(kind->tp_base, Py_TPFLAGS_HAVE_GC)
            && kind->tp_basicsize == kind->tp_base->tp_basicsize && kind->tp_itemsize == 0
            && kind->tp_dictoffset == 0 && kind->tp_weaklistoffset == 0) {
            kind->tp_flags &= ~Py_TPFLAGS_HAVE_GC;
            kind->tp_free = PyObject_Free;
        }
    }

    /* Keywords of other clients in a call of `send`. A function that accepts any keyword creates a
       dict in each call, so its calls are made as before, and only a failed one is looked at. */
    static vectorcallfunc explained_call;
    static PyObject *explained_refusal, *explained_names;

    static PyObject *call_explained(
        PyObject *function, PyObject *const *arguments, size_t count, PyObject *keywords
    ) {
        PyObject *result = explained_call(function, arguments, count, keywords);
        if (result == NULL && keywords != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
            Py_ssize_t i;
            for (i = 0; i < PyTuple_GET_SIZE(keywords); i++) {
                if (PyDict_GetItem(explained_names, PyTuple_GET_ITEM(keywords, i)) != NULL) {
                    PyErr_Clear();
                    return PyObject_CallFunctionObjArgs(explained_refusal, keywords, NULL);
                }
            }
        }
        return result;
    }

    static void explain_keywords(PyObject *function, PyObject *refusal, PyObject *names) {
        Py_ssize_t offset = Py_TYPE(function)->tp_vectorcall_offset;
        explained_call = offset > 0 ? PyVectorcall_Function(function) : NULL;
        if (explained_call != NULL) {
            Py_INCREF(refusal);
            Py_INCREF(names);
            explained_refusal = refusal;
            explained_names = names;
            *(vectorcallfunc *)((char *)function + offset) = call_explained;
        }
    }

    #ifdef CLOCK_REALTIME
    #define HAS_REALTIME 1
    static CYTHON_INLINE int64_t realtime_ms(void) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    #else
    #define HAS_REALTIME 0
    #define realtime_ms() 0
    #endif
    """
    object new_instance(object kind, tuple no_arguments)
    void set_not_collected(object kind)
    void explain_keywords(object function, object refusal, dict names)
    bint HAS_REALTIME
    int64_t realtime_ms()

cdef tuple NO_ARGUMENTS = ()
cdef bytes NO_HEADERS = pack_headers(None)
cdef tuple NO_ERROR = (None, None, None)
cdef type SYSTEM_LOCK = type(RLock())


def leave_to_reference_counts(cls, **options):
    """Exclude instances of a new class without fields from garbage collection, as its base's."""
    super(RecordHandle, cls).__init_subclass__(**options)
    set_not_collected(cls)


@cython.no_gc
cdef class RecordHandle:
    """State of a record's future; the batch's result holds the rest."""
    __init_subclass__ = classmethod(leave_to_reference_counts)

    cdef readonly object _result
    cdef readonly int64_t _timestamp_ms
    cdef readonly int32_t _index, _key_size, _value_size

    def __init__(self, result, index, timestamp_ms, key_size, value_size):
        self._result = result
        self._index = index
        self._timestamp_ms = timestamp_ms
        self._key_size = key_size
        self._value_size = value_size


cdef inline int32_t size_of(object data) except -2:
    return -1 if data is None else <int32_t>len(data)


@cython.final
cdef class QueueLock:
    """Re-entrant lock as `threading.RLock`, which appends acquire without a Python call."""
    cdef cython.pymutex _mutex
    cdef unsigned long _owner  # 0 for none; a thread finds its own id only if it wrote it
    cdef int _depth

    def __enter__(self):
        acquire(self)
        return True

    def __exit__(self, kind, error, trace):
        release(self)


cdef inline void acquire(QueueLock lock) noexcept:
    cdef unsigned long caller = PyThread_get_thread_ident()
    if lock._owner != caller:
        lock._mutex.acquire()
        lock._owner = caller
    lock._depth += 1


cdef inline void release(QueueLock lock) noexcept:
    lock._depth -= 1
    if not lock._depth:
        lock._owner = 0
        lock._mutex.release()


cdef class OpenQueue:
    """The part of a partition's queue that `send` uses."""
    cdef readonly object lock, open_batch
    cdef QueueLock _own_lock  # `lock`, if it is one
    cdef object _enter, _exit
    cdef object _future_type  # a class: `type` would refuse one that has a metaclass
    cdef object _in_use  # the batch of the append in progress
    cdef object _result  # these three of the open batch
    cdef RecordBatchBuilder _builder
    cdef list _deliveries

    def __init__(self, lock, future_type):
        if not issubclass(future_type, RecordHandle):
            raise TypeError(f"future_type: got {future_type}, expected a subclass of RecordHandle")
        if type(lock) is SYSTEM_LOCK:
            lock = self._own_lock = QueueLock()
        self.lock = lock
        self._enter = lock.__enter__
        self._exit = lock.__exit__
        self._future_type = future_type

    def set_open_batch(self, batch):
        """Set the batch that records are appended to; the caller holds the lock."""
        cdef RecordBatchBuilder builder = None
        cdef object result = None
        cdef list deliveries = None
        if batch is not None:
            builder, result = batch.builder, batch.result
            deliveries = result.deliveries
        # Kept until all are replaced: the end of an object may run code that appends.
        before = (self._builder, self._result, self._deliveries, self.open_batch)
        self._builder, self._result, self._deliveries = builder, result, deliveries
        self.open_batch = batch

    def close_full_batch(self, batch):
        """Close a batch because a record did not fit; the caller holds the lock."""
        batch.is_filled = True
        if self.open_batch is batch:
            self.set_open_batch(None)

    def use_open_batch(self):
        """Begin an append to the open batch; the caller holds the lock."""
        outer = self._in_use
        if self.open_batch is None or self.open_batch is outer:
            self.set_open_batch(None)
            return None, outer
        self._in_use = self.open_batch
        return self._in_use, outer

    def end_use(self, outer):
        """End an append, given the batch of the outer one, if there is one."""
        self._in_use = outer

    def try_append(self, timestamp_ms, key, value, bytes headers not None, on_delivery):
        """Append a record and return its future, or None if a new batch is needed."""
        return try_append(self, as_timestamp(timestamp_ms), key, value, headers, on_delivery)

    def append(self, timestamp_ms, key, value, bytes headers not None, on_delivery):
        """Do what `try_append` does; the caller holds the lock."""
        return append(self, as_timestamp(timestamp_ms), key, value, headers, on_delivery)


cdef object try_append(
    OpenQueue self, int64_t timestamp_ms, object key, object value, bytes headers,
    object on_delivery,
):
    if self._own_lock is not None:
        acquire(self._own_lock)
        try:
            return append(self, timestamp_ms, key, value, headers, on_delivery)
        finally:
            release(self._own_lock)
    self._enter()
    try:
        return append(self, timestamp_ms, key, value, headers, on_delivery)
    finally:
        self._exit(*NO_ERROR)


cdef object append(
    OpenQueue self, int64_t timestamp_ms, object key, object value, bytes headers,
    object on_delivery,
):
    # A finalizer may run in calls of Python code and in the creation of collected objects, and may
    # send to this partition, see `use_open_batch`: the state is read before, and kept.
    cdef RecordHandle future = <RecordHandle>new_instance(self._future_type, NO_ARGUMENTS)
    cdef RecordBatchBuilder builder = self._builder
    cdef list deliveries = None if on_delivery is None else self._deliveries
    cdef int64_t index
    if builder is None:
        return None
    if self._in_use is not None:
        return append_within(self, timestamp_ms, key, value, headers, on_delivery)
    future._result = self._result
    self._in_use = self.open_batch
    try:
        index = builder.append_next(timestamp_ms, key, value, headers)
        while index < 0:
            if not self._in_use.grow():
                self.close_full_batch(self._in_use)
                return None
            index = builder.append_next(timestamp_ms, key, value, headers)
        future._timestamp_ms = timestamp_ms
        future._index = <int32_t>index
        future._key_size = size_of(key)
        future._value_size = size_of(value)
        if deliveries is not None:
            deliveries.append((index, future, on_delivery))
        return future
    finally:
        self._in_use = None


cdef object append_within(
    OpenQueue self, int64_t timestamp_ms, object key, object value, bytes headers,
    object on_delivery,
):
    """Append a record within another append to the partition: not to the batch of that one."""
    outer = self._in_use
    if self.open_batch is outer:
        self.set_open_batch(None)
        return None
    self._in_use = None
    try:
        return append(self, timestamp_ms, key, value, headers, on_delivery)
    finally:
        self._in_use = outer


cdef class TopicView:
    """The part of a topic that `send` uses."""
    cdef public int32_t partition_count
    cdef public tuple queues
    cdef public OpenQueue sticky_queue
    cdef public bint used

    def __init__(self):
        self.queues = ()
        self.used = True


@cython.auto_pickle(False)
cdef class FastPath:
    """Base of producers: the fast path of `send`, for bytes and known partitions."""
    cdef public bint _fast_path_enabled
    cdef readonly dict _topics
    cdef object _append, _wall_ns, _checked_callback
    cdef bint _reads_system_clock

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, topics, append, wall_ns):
        self._topics = topics
        self._append = append
        self._wall_ns = wall_ns
        # The system's clock is read in C: the call and its result, an int, cost as much as the rest
        # of an append.
        self._reads_system_clock = HAS_REALTIME and wall_ns is time_ns

    def _try_send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery):
        """Append a record and return its future, or None if the slow path is needed."""
        return try_send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)


@cython.auto_pickle(False)
cdef class SendPath(FastPath):
    """Base of the blocking producer: `send`."""

    def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        headers: Sequence[Header] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        future = try_send(self, topic, value, key, headers, partition, timestamp_ms, on_delivery)
        if future is not None:
            return future
        return self._send_slow(
            topic, value, key, headers, partition, timestamp_ms, on_delivery
        )


# The docstring is written once.
SendPath.send.__doc__ = reference.SendPath.send.__doc__
SendPath.send.__wrapped__ = reference.SendPath.send  # its signature is shown


def refuse_unknown_keywords(names):
    """Raise the error of a call with keywords of other clients."""
    refuse_keywords("Producer.send", {each: None for each in names if each in SEND}, SEND)


explain_keywords(SendPath.send, refuse_unknown_keywords, SEND)


# Functions, not methods: a class with C methods has a visible attribute for their table.

cdef object try_send(
    FastPath self, object topic, object value, object key, object headers, object partition,
    object timestamp_ms, object on_delivery,
):
    """Fast path: append a record and return its future, or None if the slow path is needed."""
    cdef TopicView info
    cdef OpenQueue queue = None
    cdef int64_t time_ms
    if not self._fast_path_enabled:
        return None
    if type(topic) is not str or not (is_bytes_or_none(value) and is_bytes_or_none(key)):
        return None
    info = self._topics.get(topic)
    if info is None:
        return None
    if not (
        (partition is None or is_within(partition, info.partition_count - 1))
        and (timestamp_ms is None or is_within(timestamp_ms, INT64_MAX))
    ):
        return None
    if on_delivery is not None and on_delivery is not self._checked_callback:
        check_on_delivery(on_delivery)
        self._checked_callback = on_delivery
    if partition is not None:
        queue = info.queues[<Py_ssize_t>partition]
    elif key is not None:
        queue = info.queues[(murmur2(key) & 0x7FFFFFFF) % info.partition_count]
    if timestamp_ms is not None:
        time_ms = PyLong_AsLongLong(timestamp_ms)
    elif self._reads_system_clock:
        time_ms = realtime_ms()
    else:
        time_ms = <int64_t>self._wall_ns() // 1_000_000
    return append_fast(
        self, info, queue, time_ms, key, value,
        NO_HEADERS if headers is None else pack_headers(headers), on_delivery,
    )


cdef object append_fast(
    FastPath self, TopicView info, OpenQueue queue, int64_t timestamp_ms, object key,
    object value, bytes headers, object on_delivery,
):
    cdef OpenQueue target = info.sticky_queue if queue is None else queue
    info.used = True
    if target is not None:
        future = try_append(target, timestamp_ms, key, value, headers, on_delivery)
        if future is not None:
            return future
    try:
        return self._append(info, queue, target, timestamp_ms, key, value, headers, on_delivery)
    except ClosedError:
        return None


def all_bytes_or_none(list rows not None):
    """Return whether every row is None or of the type bytes."""
    for row in rows:
        if not is_bytes_or_none(row):
            return False
    return True


cdef inline bint is_bytes_or_none(object data) noexcept:
    return data is None or type(data) is bytes


cdef inline bint is_within(object number, int64_t most) except -1:
    cdef int overflow = 0
    cdef int64_t found
    if type(number) is not int:
        return False
    found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return overflow == 0 and 0 <= found <= most
