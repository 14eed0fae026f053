"""The configuration keys that producers, consumers and admin clients share."""

from kclient.client.bootstrap_servers import parse_bootstrap_servers
from kclient.common.config_aliases import NO_SECURITY
from kclient.common.config_def import (
    REQUIRED,
    ConfigKey,
    choice,
    describe,
    text,
    whole_number,
)
from kclient.common.errors import ConfigError

_OTHER_PROTOCOLS = frozenset({"SSL", "SASL_PLAINTEXT", "SASL_SSL"})


def common_keys(
    *, receive_buffer_bytes: int = -1, connections_max_idle_ms: int = 540_000
) -> list[ConfigKey]:
    """Return the shared keys, each with Kafka's default but for the sizes of socket buffers.

    Kafka's sizes, 64 and 128 KiB, keep the operating system from fitting the buffers to the
    connection: on loopback, responses of 1 MiB cost twice the time with 64 KiB.

    Args:
        receive_buffer_bytes: Default of ``receive.buffer.bytes``, which differs by client.
        connections_max_idle_ms: Default of ``connections.max.idle.ms``, which differs by client.
    """
    return [
        *_identity_keys(),
        *_connection_keys(receive_buffer_bytes, connections_max_idle_ms),
        *_retry_keys(),
        *_metadata_keys(),
    ]


def _identity_keys() -> list[ConfigKey]:
    return [
        ConfigKey(
            "bootstrap.servers",
            parse_bootstrap_servers,
            "'host:port[,host:port]' or a list of 'host:port'",
            REQUIRED,
            "Brokers to ask first; one that answers names all others.",
        ),
        text(
            "client.id",
            None,
            "Name of this client in the brokers' logs, metrics and quotas.",
        ),
        ConfigKey(
            "security.protocol",
            _security_protocol,
            "'PLAINTEXT'",
            "PLAINTEXT",
            "How connections are protected.",
        ),
    ]


def _connection_keys(receive_buffer_bytes: int, connections_max_idle_ms: int) -> list[ConfigKey]:
    return [
        choice(
            "client.dns.lookup",
            "use_all_dns_ips",
            {"use_all_dns_ips": "use_all_dns_ips"},
            "Every address of a name is tried, in the resolver's order.",
        ),
        whole_number(
            "request.timeout.ms",
            30_000,
            "How long an answer may take before the connection is closed and the request retried.",
        ),
        whole_number(
            "socket.connection.setup.timeout.ms",
            10_000,
            "How long a connection attempt may take at first; doubles with each failure.",
        ),
        whole_number(
            "socket.connection.setup.timeout.max.ms",
            30_000,
            "How long a connection attempt may take after many failures.",
        ),
        whole_number(
            "connections.max.idle.ms",
            connections_max_idle_ms,
            "A connection that nobody has used for so long is closed.",
        ),
        whole_number(
            "send.buffer.bytes",
            -1,
            "Size of the socket's send buffer; -1 leaves it to the operating system.",
            low=-1,
        ),
        whole_number(
            "receive.buffer.bytes",
            receive_buffer_bytes,
            "Size of the socket's receive buffer; -1 leaves it to the operating system.",
            low=-1,
        ),
        whole_number(
            "receive.message.max.bytes",
            100 * 1024 * 1024,
            "Largest response taken in; a larger one ends the connection. Not a key of Java's.",
            low=1000,
            high=2**31 - 1,
        ),
    ]


def _retry_keys() -> list[ConfigKey]:
    return [
        whole_number(
            "reconnect.backoff.ms",
            50,
            "Wait before connecting to a broker again; doubles with each failure.",
        ),
        whole_number(
            "reconnect.backoff.max.ms",
            1000,
            "Longest wait before connecting to a broker again; up to 20 % are added by chance.",
        ),
        whole_number(
            "retry.backoff.ms",
            100,
            "Wait before a failed request is tried again; doubles with each failure.",
        ),
        whole_number(
            "retry.backoff.max.ms",
            1000,
            "Longest wait before a failed request is tried again; up to 20 % are added by chance.",
        ),
    ]


def _metadata_keys() -> list[ConfigKey]:
    return [
        whole_number(
            "metadata.max.age.ms",
            300_000,
            "After so long the cluster is asked for its brokers and topics without a reason.",
        ),
        choice(
            "metadata.recovery.strategy",
            "rebootstrap",
            {"rebootstrap": "rebootstrap", "none": "none"},
            "What to do when no known broker can be reached: ask the bootstrap servers, or wait.",
        ),
        whole_number(
            "metadata.recovery.rebootstrap.trigger.ms",
            300_000,
            "After so long without metadata the bootstrap servers are asked.",
        ),
    ]


def _security_protocol(raw: object) -> str:
    name = raw.upper() if isinstance(raw, str) else raw
    if name == "PLAINTEXT":
        return "PLAINTEXT"
    if name in _OTHER_PROTOCOLS:
        # To go on without the protection that was asked for would be worse than to stop.
        raise ConfigError(
            f"security_protocol: got {describe(raw)}, expected 'PLAINTEXT'; {NO_SECURITY}"
        )
    raise ValueError
