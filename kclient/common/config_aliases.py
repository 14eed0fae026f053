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
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.certificate.location": "ssl.keystore.location",
    "ssl.key.location": "ssl.keystore.key",
    "sasl.mechanisms": "sasl.mechanism",
    "partitioner": "partitioner.class",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
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
    "reconnect_backoff_ms_max": "reconnect.backoff.max.ms",
    "retry_backoff": "retry.backoff.ms",
    "sasl_plain_username": "sasl.jaas.config",
    "sasl_plain_password": "sasl.jaas.config",
    "ssl_cafile": "ssl.truststore.location",
    "ssl_certfile": "ssl.keystore.location",
    "ssl_keyfile": "ssl.keystore.key",
    "ssl_password": "ssl.key.password",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
    # aiokafka
    "max_batch_size": "batch.size",
}

_VERSIONS = "leave it out: versions are negotiated with each broker"
_CALLBACKS = "leave it out: errors are raised by the call they concern, or given to its callback"
_OUTCOMES = "give on_delivery to send(), or keep the future that it returns"
_METRICS = "leave it out: .metrics() returns the figures"
_LOGGING = "leave it out: set the level of the logger 'kclient'"

_ELSEWHERE = {
    # librdkafka and confluent-kafka
    "enable.auto.offset.store": "set enable_auto_commit=False and call commit()",
    "on_delivery": _OUTCOMES,
    "dr_cb": _OUTCOMES,
    "error_cb": _CALLBACKS,
    "stats_cb": _METRICS,
    "statistics.interval.ms": _METRICS,
    "debug": _LOGGING,
    "log_level": _LOGGING,
    "logger": _LOGGING,
    "api.version.request": _VERSIONS,
    "broker.version.fallback": _VERSIONS,
    # kafka-python
    "api_version": _VERSIONS,
    "api_version_auto_timeout_ms": _VERSIONS,
    "consumer_timeout_ms": "give the time to poll(timeout=...), in seconds",
    "sock_chunk_bytes": "leave it out: reads are sized by the responses",
    "topics": "call subscribe(topics)",
    # aiokafka
    "loop": "leave it out: this client is synchronous",
    "retriable_errors": "leave it out: retriable errors are retried until delivery_timeout_ms",
}

OTHER_SPELLINGS: dict[str, str] = {
    old: f"here it is {new.replace('.', '_')}" for old, new in _RENAMED.items()
} | _ELSEWHERE
"""What to tell a user who wrote another client's name of a setting."""
