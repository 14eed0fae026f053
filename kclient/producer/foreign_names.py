"""Method names of other clients' producers and futures, and their replacements."""

from collections.abc import Mapping

_FLUSHING = "delivery callbacks run in the producer's own thread; polling is not needed"
_RESULT = "use result(timeout), in seconds"
_ON_DONE = "use add_done_callback(callback), called with the future, or on_delivery= of send()"

PRODUCER_NAMES: Mapping[str, str] = {
    "abortTransaction": "use abort_transaction()",
    "beginTransaction": "use begin_transaction()",
    "bootstrap_connected": "use partitions_for(topic), which waits for a broker",
    "commitTransaction": "use commit_transaction()",
    "create_batch": "use send_many(topic, values)",
    "initTransactions": "use init_transactions()",
    "list_topics": "use partitions_for(topic), or list_topics() of an AdminClient",
    "partitionsFor": "use partitions_for(topic)",
    "poll": _FLUSHING,
    "produce": "use send(topic, value, key, on_delivery=callback), called with (metadata, error)",
    "produce_batch": "use send_many(topic, values)",
    "purge": "use close(0), which fails the records that are not acknowledged",
    "sendOffsetsToTransaction": "use send_offsets_to_transaction(offsets, group_metadata)",
    "send_and_wait": "use send(...).result(), or await send(...) in an asyncio loop",
    "send_batch": "use send_many(topic, values)",
    "start": "it is started when it is created; with transactional_id call init_transactions()",
    "stop": "use close()",
}

SEND: Mapping[str, str] = {
    "callback": "use on_delivery=, called with (metadata, error)",
    "timeout": "use max_block_ms, an option of the producer, or result(timeout) of the future",
    "timestamp": "use timestamp_ms=, in milliseconds since the epoch",
}

SEND_MANY: Mapping[str, str] = {
    "callback": "use add_done_callback() of the returned delivery",
    "on_delivery": "use add_done_callback() of the returned delivery",
    "timestamp": "use timestamps_ms=, in milliseconds since the epoch",
    "timestamp_ms": "use timestamps_ms=",
    "timestamps": "use timestamps_ms=, in milliseconds since the epoch",
}

FUTURE_NAMES: Mapping[str, str] = {
    "add_both": _ON_DONE,
    "add_callback": _ON_DONE,
    "add_errback": _ON_DONE,
    "failed": "use exception(0), which is None for a success; done() is True once it is known",
    "get": _RESULT,
    "isCancelled": "use cancelled()",
    "isDone": "use done()",
    "is_done": "use done()",
    "offset": "use result().offset",
    "partition": "use result().partition",
    "retriable": "use exception().retriable",
    "succeeded": "use done() and exception() is None",
    "value": _RESULT,
}
