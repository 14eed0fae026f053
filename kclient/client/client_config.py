"""Configuration keys common to producers, consumers and admin clients."""

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
    """Return the common keys, with Kafka's defaults except for the sizes of socket buffers.

    Kafka's sizes, 64 and 128 KiB, keep the operating system from adapting the buffers to the
    connection: on loopback, responses of 1 MiB take twice as long with 64 KiB.

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
            "Brokers to connect to first; the first response names all others.",
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
            "All addresses of a name are tried, in the resolver's order.",
        ),
        whole_number(
            "request.timeout.ms",
            30_000,
            "Time after which a request without a response is retried on a new connection.",
        ),
        whole_number(
            "socket.connection.setup.timeout.ms",
            10_000,
            "Timeout of the first connection attempt; doubles with each failure.",
        ),
        whole_number(
            "socket.connection.setup.timeout.max.ms",
            30_000,
            "Longest timeout of a connection attempt.",
        ),
        whole_number(
            "connections.max.idle.ms",
            connections_max_idle_ms,
            "Connections that have been idle for this time are closed.",
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
            "Largest response; a larger one closes the connection. Not a key of the Java client.",
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
            "Longest wait before connecting to a broker again; up to 20 % are added at random.",
        ),
        whole_number(
            "retry.backoff.ms",
            100,
            "Wait before a failed request is retried; doubles with each failure.",
        ),
        whole_number(
            "retry.backoff.max.ms",
            1000,
            "Longest wait before a failed request is retried; up to 20 % are added at random.",
        ),
    ]


def _metadata_keys() -> list[ConfigKey]:
    return [
        whole_number(
            "metadata.max.age.ms",
            300_000,
            "Age after which metadata is updated even if no change is known.",
        ),
        choice(
            "metadata.recovery.strategy",
            "rebootstrap",
            {"rebootstrap": "rebootstrap", "none": "none"},
            "What to do if no known broker is reachable: rebootstrap, or keep trying them.",
        ),
        whole_number(
            "metadata.recovery.rebootstrap.trigger.ms",
            300_000,
            "Time without a metadata response after which the client rebootstraps.",
        ),
    ]


def _security_protocol(raw: object) -> str:
    name = raw.upper() if isinstance(raw, str) else raw
    if name == "PLAINTEXT":
        return "PLAINTEXT"
    if name in _OTHER_PROTOCOLS:
        # Never continue without the security that was configured.
        raise ConfigError(
            f"security_protocol: got {describe(raw)}, expected 'PLAINTEXT'; {NO_SECURITY}"
        )
    raise ValueError
