"""Advice for each error that only kclient raises, for the reference page."""

ADVICE = {
    "AuthenticationError": "Correct the credentials; see [TLS and SASL]"
    "(../how-to/tls-and-sasl.md).",
    "BootstrapError": "Check address, port and network; see "
    "[connection problems](../how-to/connection-problems.md).",
    "BufferExhaustedError": "Send more slowly or raise `buffer.memory`; a broker that is slow or "
    "down is the usual cause.",
    "ClosedError": "Create a new client.",
    "CommitFailedError": "Continue polling: the new owner of the partitions processes the records "
    "again. Where it happens often, poll more often or raise `max.poll.interval.ms`.",
    "CompressionError": "See UndecompressableBatchError.",
    "ConcurrentAccessError": "Use the consumer in one thread; other threads may call `wakeup()`.",
    "ConfigError": "Correct the option that the text names.",
    "CorrelationIdMismatchError": "Nothing: requests are sent again on a new connection.",
    "CorruptBatchError": "Poll again. Where it remains, the log is damaged: seek to `next_offset` "
    "to skip the batch.",
    "DeliveryTimeoutError": "Look at `possibly_written` before you send the record again.",
    "DisconnectedError": "Nothing: requests are sent again until the call's deadline.",
    "EventLoopError": "Call it in a thread: `await asyncio.to_thread(...)`; see "
    "[asyncio](../how-to/use-in-asyncio-code.md).",
    "FatalError": "Close the client and create a new one.",
    "ForkedClientError": "Create a client in each process, after `fork()`.",
    "CredentialsPendingError": "Nothing: the connection is opened again.",
    "DecompressedRecordSizeError": "Raise `max.decompressed.record.bytes`.",
    "IllegalStateError": "Correct the order of calls; the text says what is missing.",
    "IncompleteBatchError": "Raise `fetch.max.bytes` and `max.partition.fetch.bytes`. Where that "
    "does not help, the log is damaged: seek to `next_offset`.",
    "InvalidArgumentError": "Correct the argument that the text names.",
    "InvalidMetadataError": "Nothing: metadata is refreshed and the request sent again.",
    "InvalidOffsetError": "Seek to an offset that exists, or set `auto.offset.reset`.",
    "InvalidReceiveError": "Raise `receive.message.max.bytes` if the response is legitimate.",
    "InvalidTypeError": "Correct the argument that the text names.",
    "KafkaError": "Catch it to catch everything below.",
    "KafkaTimeoutError": "The text names the last failure; try again, or pass a longer timeout.",
    "LogTruncationError": "Decide where to continue: seek to an offset in `divergent`, or reset.",
    "NoOffsetForPartitionError": "Seek to an offset, or set `auto.offset.reset`.",
    "OffsetsOutOfRangeError": "Seek to an offset that exists, or set `auto.offset.reset`.",
    "TransactionAbortedError": "Send the record again in another transaction if it is needed.",
    "ProducerFatalError": "Close the producer and create a new one; the `__cause__` says why.",
    "ProtocolError": "The peer is no Kafka broker, or a proxy changes what it sends.",
    "RecordDeserializationError": "Store the raw `key` and `value` elsewhere and seek to "
    "`offset + 1`; see [poison messages](../how-to/serializers.md).",
    "RetriableCommitFailedError": "Commit again.",
    "RetriableError": "Try again.",
    "SslAuthenticationError": "Correct the certificates or the address; the text has the cause.",
    "SerializationError": "Correct the serializer or the data; the `__cause__` says why.",
    "UndecompressableBatchError": "If the text names `max.decompressed.record.bytes`, raise it: "
    "the batch is intact. Else poll again; where it remains, the log is damaged: seek to "
    "`next_offset` to skip the batch.",
    "UnknownPartitionError": "Send to a partition that exists, or add partitions.",
    "UnreadableBatchError": "Poll again; seek to `next_offset` to skip the batch.",
    "UnsupportedBatchError": "Have the topic's old segments rewritten or deleted, or seek to "
    "`next_offset`.",
    "WakeupError": "End the loop and close the consumer.",
}
"""By the name of the class; tests/docs checks that none is missing."""
