"""Options of other Kafka clients, and their replacements.

Names are spelled as in the documentation of those clients; dots and underscores are equivalent.
"""

from typing import NamedTuple

NO_SECURITY = "it is not available in this version"
"""The reason why the broker refuses an option about encryption or authentication."""


class ForeignOption(NamedTuple):
    """Hint for a user who sets an option of another client.

    Attributes:
        names: Dotted names of the options that replace it, of which a client has one or none.
        note: Difference to these; without such an option, what to do instead.
    """

    names: tuple[str, ...]
    note: str = ""


def foreign_option(keyword: str) -> ForeignOption | None:
    """Return the hint for another client's option, None for an unknown one.

    Args:
        keyword: Name of the option in lower case, with underscores for dots.
    """
    return _FOREIGN_OPTIONS.get(keyword)


_RENAMED: dict[str, tuple[str, ...]] = {
    # librdkafka and confluent-kafka
    "metadata.broker.list": ("bootstrap.servers",),
    "queue.buffering.max.ms": ("linger.ms",),
    "message.timeout.ms": ("delivery.timeout.ms",),
    "message.max.bytes": ("max.request.size",),
    "message.send.max.retries": ("retries",),
    "request.required.acks": ("acks",),
    "max.in.flight": ("max.in.flight.requests.per.connection",),
    "compression.codec": ("compression.type",),
    "partitioner": ("partitioner.class",),
    "consume.callback.max.messages": ("max.poll.records",),
    "fetch.error.backoff.ms": ("retry.backoff.ms",),
    "fetch.message.max.bytes": ("max.partition.fetch.bytes",),
    "fetch.wait.max.ms": ("fetch.max.wait.ms",),
    "metadata.request.timeout.ms": ("request.timeout.ms",),
    "topic.metadata.propagation.max.ms": ("max.block.ms",),
    "topic.metadata.refresh.interval.ms": ("metadata.max.age.ms",),
    "socket.timeout.ms": ("request.timeout.ms",),
    "socket.connection.setup.timeout": ("socket.connection.setup.timeout.ms",),
    "socket.send.buffer.bytes": ("send.buffer.bytes",),
    "socket.receive.buffer.bytes": ("receive.buffer.bytes",),
    "auto.commit.enable": ("enable.auto.commit",),
    "sasl.mechanisms": ("sasl.mechanism",),
    "sasl.oauthbearer.client.id": ("sasl.oauthbearer.client.credentials.client.id",),
    "sasl.oauthbearer.client.secret": ("sasl.oauthbearer.client.credentials.client.secret",),
    "ssl.ca.location": ("ssl.truststore.location",),
    "ssl.ca.pem": ("ssl.truststore.certificates",),
    "ssl.certificate.pem": ("ssl.keystore.certificate.chain",),
    "ssl.key.pem": ("ssl.keystore.key",),
    # kafka-python
    "sasl.plain.username": ("sasl.username",),
    "sasl.plain.password": ("sasl.password",),
    "ssl.cafile": ("ssl.truststore.location",),
    "ssl.password": ("ssl.key.password",),
    "bootstrap.timeout.ms": ("default.api.timeout.ms", "max.block.ms"),
    "group.name": ("group.id",),
    "reconnect.backoff.ms.max": ("reconnect.backoff.max.ms",),
    "request.timeout.seconds": ("request.timeout.ms",),
    "retry.backoff": ("retry.backoff.ms",),
    # aiokafka
    "max.batch.size": ("batch.size",),
}

_IN_BYTES = {
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.messages": "buffer.memory",
    "batch.num.messages": "batch.size",
    "queued.max.messages.kbytes": "fetch.max.bytes",
    "queued.min.messages": "fetch.max.bytes",
}

_LEVELS = ("compression.gzip.level", "compression.lz4.level", "compression.zstd.level")

_ALWAYS = "leave it out; it cannot be changed here"
_NOT_YET = "not available in this version"
_KEYTAB = "set keyTab and principal in sasl_jaas_config, with Krb5LoginModule"
_ONE_FILE = "set ssl_keystore_location to one file with private key and certificate chain"
_PROTOCOL = "set security_protocol"
_CONTEXT = "pass an ssl.SSLContext with this setting as ssl_context"
_CALLBACKS = "leave it out; errors are raised by the call they concern, or passed to its callback"
_LOGGING = "leave it out; set the level of the logger 'kclient'"
_METRICS = "leave it out; .metrics() of a producer or a consumer returns the metrics"
_MOCK = "leave it out; kclient.testing.EmbeddedCluster is a broker for tests"
_NO_PROXY = "proxies are not available in this version"
_OUTCOMES = "pass on_delivery to send(), or keep the future that it returns"
_STORED = "leave it out; the group's coordinator stores committed offsets"
_SYNCHRONOUS = "leave it out; this client is synchronous"
_VERSIONS = "leave it out; versions are negotiated with each broker"

_NOTES = {
    # librdkafka and confluent-kafka
    "api.version.request": _VERSIONS,
    "api.version.request.timeout.ms": _VERSIONS,
    "api.version.fallback.ms": _VERSIONS,
    "broker.version.fallback": _VERSIONS,
    "broker.address.family": "not available; every address of a host name is tried, IPv4 and IPv6",
    "broker.address.ttl": "leave it out; host names are looked up for each connection",
    "builtin.features": _ALWAYS,
    "client.software.name": _ALWAYS,
    "coordinator.query.interval.ms": "leave it out; a coordinator is looked up when it is unknown",
    "debug": _LOGGING,
    "default.topic.config": "pass these options together with the others",
    "delivery.report.only.error": _OUTCOMES,
    "dr_cb": _OUTCOMES,
    "dr_msg_cb": _OUTCOMES,
    "on_delivery": _OUTCOMES,
    "produce.offset.report": "leave it out; a record's outcome always has its offset",
    "enable.auto.offset.store": "set enable_auto_commit=False and call commit()",
    "enable.gapless.guarantee": "not available; enable_idempotence keeps the records in order",
    "enable.partition.eof": "not available; compare position() with end_offsets()",
    "enable.random.seed": _ALWAYS,
    "enable.sparse.connections": "leave it out; connections are made when they are needed",
    "enabled_events": _CALLBACKS,
    "error_cb": _CALLBACKS,
    "throttle_cb": _METRICS,
    "stats_cb": _METRICS,
    "statistics.interval.ms": _METRICS,
    "rebalance_cb": "pass on_assigned, on_revoked and on_lost to subscribe()",
    "offset_commit_cb": "pass callback to commit_async()",
    "on_commit": "pass callback to commit_async()",
    "fetch.queue.backoff.ms": "leave it out; fetching pauses while fetched records are not polled",
    "group.protocol.type": "leave it out; it is always 'consumer'",
    "internal.termination.signal": "leave it out; close() ends all threads",
    "log.connection.close": _LOGGING,
    "log.queue": _LOGGING,
    "log.thread.name": _LOGGING,
    "log_cb": _LOGGING,
    "log_level": _LOGGING,
    "logger": _LOGGING,
    "message.copy.max.bytes": "leave it out; records are always copied into batches",
    "offset.store.method": _STORED,
    "offset.store.path": _STORED,
    "offset.store.sync.interval.ms": _STORED,
    "closesocket_cb": _ALWAYS,
    "connect_cb": _ALWAYS,
    "open_cb": _ALWAYS,
    "resolve_cb": _ALWAYS,
    "socket_cb": _ALWAYS,
    "background_event_cb": _CALLBACKS,
    "consume_cb": "call poll() in a loop",
    "plugin.library.paths": "plugins are not available",
    "queue.buffering.backpressure.threshold": "leave it out; linger_ms and batch_size decide",
    "queuing.strategy": _ALWAYS,
    "msg_order_cmp": _ALWAYS,
    "partitioner_cb": "pass a callable as partitioner_class",
    "reconnect.backoff.jitter.ms": "leave it out; up to 20 % are always added at random",
    "socket.blocking.max.ms": _ALWAYS,
    "socket.keepalive.enable": "not available; connections_max_idle_ms closes idle connections",
    "socket.max.fails": "leave it out; a connection is closed at its first failure",
    "socket.nagle.disable": "leave it out; TCP_NODELAY is always set",
    "sticky.partitioning.linger.ms": "leave it out; records without a key change the partition "
    "when batch_size bytes were sent to it",
    "test.mock.broker.rtt": _MOCK,
    "test.mock.num.brokers": _MOCK,
    "topic.blacklist": "leave it out; subscribe to the topics or the pattern that you want",
    "topic.metadata.refresh.fast.cnt": _ALWAYS,
    "topic.metadata.refresh.fast.interval.ms": "leave it out; retry_backoff_ms decides",
    "topic.metadata.refresh.sparse": "leave it out; only topics in use are looked up",
    "enable.ssl.certificate.verification": _CONTEXT,
    "ssl.certificate.location": _ONE_FILE,
    "ssl.key.location": _ONE_FILE,
    "ssl.crl.location": _CONTEXT,
    "ssl.curves.list": _CONTEXT,
    "ssl.sigalgs.list": _CONTEXT,
    "enable_sasl_queue": _NOT_YET,
    "enable.sasl.oauthbearer.unsecure.jwt": _NOT_YET,
    "oauthbearer_token_refresh_cb": "pass the function as sasl_token_provider",
    "ssl_engine_callback_data": _CONTEXT,
    "oauth_cb": "pass the function as sasl_token_provider",
    "sasl.kerberos.keytab": _KEYTAB,
    "sasl.kerberos.principal": _KEYTAB,
    "sasl.oauthbearer.config": _NOT_YET,
    "sasl.oauthbearer.method": "leave it out; set sasl_oauthbearer_token_endpoint_url",
    "ssl.ca.certificate.stores": _CONTEXT,
    "ssl.engine.id": _CONTEXT,
    "ssl.engine.location": _CONTEXT,
    "ssl.providers": _CONTEXT,
    # kafka-python
    "sasl_kerberos_domain_name": "leave it out; the host name in bootstrap_servers is used, or the"
    " advertised one",
    "sasl_kerberos_name": "set sasl_kerberos_service_name",
    "sasl_oauth_token_provider": "pass an object whose token() returns a token and its expiry as"
    " sasl_token_provider",
    "ssl": _PROTOCOL,
    "tls": _PROTOCOL,
    "use_ssl": _PROTOCOL,
    "use_tls": _PROTOCOL,
    "ssl_certfile": _ONE_FILE,
    "ssl_keyfile": _ONE_FILE,
    "ssl_check_hostname": "set ssl_endpoint_identification_algorithm='' to accept any name",
    "ssl_ciphers": _CONTEXT,
    "ssl_crlfile": _CONTEXT,
    "api_version": _VERSIONS,
    "api_version_auto_timeout_ms": _VERSIONS,
    "consumer_timeout_ms": "pass the time to poll(timeout=...), in seconds",
    "default_offset_commit_callback": "pass callback to commit_async()",
    "enable_incremental_fetch_sessions": "leave it out; fetch sessions are used with each broker "
    "that has them",
    "kafka_client": _ALWAYS,
    "metric_group_prefix": _METRICS,
    "metrics_enabled": _METRICS,
    "proxy_url": _NO_PROXY,
    "selector": _ALWAYS,
    "sock_chunk_bytes": "leave it out; reads have the size of the responses",
    "sock_chunk_buffer_count": "leave it out; reads have the size of the responses",
    "socket_options": "not available; see send_buffer_bytes and receive_buffer_bytes",
    "socks5_proxy": _NO_PROXY,
    "topics": "call subscribe(topics)",
    "wakeup_timeout_ms": _ALWAYS,
    # aiokafka
    "loop": _SYNCHRONOUS,
    "rebalance_timeout_ms": "leave it out; max_poll_interval_ms bounds a rebalance, too",
    "retriable_errors": "leave it out; retriable errors are retried until delivery_timeout_ms",
}

_FOREIGN_OPTIONS = {
    name.replace(".", "_"): option
    for name, option in (
        *((name, ForeignOption(names)) for name, names in _RENAMED.items()),
        *((name, ForeignOption((own,), "it counts bytes")) for name, own in _IN_BYTES.items()),
        *((name, ForeignOption((), note)) for name, note in _NOTES.items()),
        ("compression.level", ForeignOption(_LEVELS, "one for each codec")),
    )
}
