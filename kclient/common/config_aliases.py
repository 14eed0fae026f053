"""How other clients spell settings, each with the name that holds here.

Keys are spelled as those clients document them; a dotted key also answers its underscore form.
"""

_RENAMED = {
    # librdkafka and confluent-kafka
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "queue.buffering.max.kbytes": "buffer.memory (bytes)",
    "queue.buffering.max.messages": "buffer.memory (bytes)",
    "batch.num.messages": "batch.size (bytes)",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "request.required.acks": "acks",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "compression.codec": "compression.type",
    "compression.level": "compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "partitioner": "partitioner.class",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "enable.auto.offset.store": "enable.auto.commit=False with commit()",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "socket.timeout.ms": "request.timeout.ms",
    "socket.connection.setup.timeout": "socket.connection.setup.timeout.ms",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "sasl.username": "sasl.jaas.config",
    "sasl.password": "sasl.jaas.config",
    "auto.commit.enable": "enable.auto.commit",
    "queued.max.messages.kbytes": "fetch.max.bytes",
    "queued.min.messages": "fetch.max.bytes",
    # kafka-python
    "request_timeout_seconds": "request.timeout.ms",
    "api_version": "nothing: versions are negotiated with each broker",
    "api_version_auto_timeout_ms": "nothing: versions are negotiated with each broker",
    "consumer_timeout_ms": "poll(timeout=...)",
    "reconnect_backoff_ms_max": "reconnect.backoff.max.ms",
    "sock_chunk_bytes": "nothing: reads are sized by the responses",
    "retry_backoff": "retry.backoff.ms",
    "sasl_plain_username": "sasl.jaas.config",
    "sasl_plain_password": "sasl.jaas.config",
    # aiokafka
    "max_batch_size": "batch.size",
    "loop": "nothing: this client is synchronous",
    "retriable_errors": "nothing: retriable errors are retried until delivery.timeout.ms",
}

OTHER_SPELLINGS: dict[str, str] = {
    old: f"here it is {new.replace('.', '_') if ' ' not in new else new}"
    for old, new in _RENAMED.items()
}
"""What to tell a user who wrote another client's name of a setting."""
