"""Configuration common to producers, consumers and admin clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

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
from kclient.common.runtime import Address

_NAME = "bootstrap_servers"
_EXPECTED = "'host:port'"
_DEFAULT_PORT = 9092
_MAX_PORT = 65535
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


class ClientOptions(TypedDict, total=False):
    """Keyword options of every client; docs/reference/configuration.md describes them.

    Times are milliseconds, sizes are bytes.
    """

    bootstrap_servers: str | Sequence[str]
    client_id: str | None
    security_protocol: Literal["PLAINTEXT"]
    client_dns_lookup: Literal["use_all_dns_ips"]
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_connection_setup_timeout_max_ms: int
    connections_max_idle_ms: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    receive_message_max_bytes: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    metadata_max_age_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metadata_recovery_rebootstrap_trigger_ms: int


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Timeouts, back-offs and limits of a `NetworkClient`; times in milliseconds.

    Attributes:
        client_id: Client id in the request headers, ``client.id``.
        request_timeout_ms: Longest wait for a response, ``request.timeout.ms``.
        max_in_flight: Requests in flight per node, ``max.in.flight.requests.per.connection``.
        reconnect_backoff_ms: Wait before the second attempt, ``reconnect.backoff.ms``.
        reconnect_backoff_max_ms: Longest such wait, ``reconnect.backoff.max.ms``.
        setup_timeout_ms: Longest duration of the first attempt to connect,
            ``socket.connection.setup.timeout.ms``.
        setup_timeout_max_ms: Longest duration after many failures,
            ``socket.connection.setup.timeout.max.ms``.
        send_buffer: Bytes of the kernel's send buffer, -1 for its default, ``send.buffer.bytes``.
        receive_buffer: Bytes of its receive buffer, -1 for its default, ``receive.buffer.bytes``.
        rebootstrap: Whether to rebootstrap when no known broker is usable,
            ``metadata.recovery.strategy``.
        rebootstrap_trigger_ms: Time without metadata after which to rebootstrap,
            ``metadata.recovery.rebootstrap.trigger.ms``.
    """

    client_id: str = "kclient"
    request_timeout_ms: float = 30_000
    max_in_flight: int = 5
    reconnect_backoff_ms: float = 50
    reconnect_backoff_max_ms: float = 1000
    setup_timeout_ms: float = 10_000
    setup_timeout_max_ms: float = 30_000
    send_buffer: int = -1
    receive_buffer: int = -1
    rebootstrap: bool = True
    rebootstrap_trigger_ms: float = 300_000


def client_settings(
    config: Mapping[str, Any], *, client_id: str, max_in_flight: int
) -> ClientSettings:
    """Return the settings of a configuration that was parsed with `common_keys`.

    Args:
        config: Values by keyword name.
        client_id: Default of ``client.id``.
        max_in_flight: Requests in flight per node.
    """
    return ClientSettings(
        client_id=config["client_id"] or client_id,
        request_timeout_ms=config["request_timeout_ms"],
        max_in_flight=max_in_flight,
        reconnect_backoff_ms=config["reconnect_backoff_ms"],
        reconnect_backoff_max_ms=config["reconnect_backoff_max_ms"],
        setup_timeout_ms=config["socket_connection_setup_timeout_ms"],
        setup_timeout_max_ms=config["socket_connection_setup_timeout_max_ms"],
        send_buffer=config["send_buffer_bytes"],
        receive_buffer=config["receive_buffer_bytes"],
        rebootstrap=config["metadata_recovery_strategy"] == "rebootstrap",
        rebootstrap_trigger_ms=config["metadata_recovery_rebootstrap_trigger_ms"],
    )


def parse_bootstrap_servers(given: object) -> tuple[Address, ...]:
    """Return names and ports from ``"host:port,host:port"`` or a sequence of ``"host:port"``.

    An IPv6 address is in brackets: ``[::1]:9092``. Names are not looked up.

    Raises:
        ConfigError: An entry does not have this form.
    """
    if isinstance(given, str):
        entries: Sequence[object] = given.split(",")
    elif isinstance(given, Sequence) and not isinstance(given, bytes | bytearray | memoryview):
        entries = given
    else:
        hint = "; decode it first" if isinstance(given, bytes | bytearray) else ""
        raise ConfigError(
            f"{_NAME}: got {describe(given)}, expected 'host:port[,host:port]' or a list{hint}"
        )
    if not entries or entries == [""]:
        raise ConfigError(f"{_NAME}: got {describe(given)}, expected at least one {_EXPECTED}")
    parsed = [_parse_server(index, entry) for index, entry in enumerate(entries)]
    return tuple(dict.fromkeys(parsed))


def _parse_server(index: int, entry: object) -> Address:
    if not isinstance(entry, str):
        raise _bootstrap_error(index, entry, f"it is of type {type(entry).__name__}")
    text = entry.strip()
    if "://" in text:
        raise _bootstrap_error(index, entry, "remove the part up to '://'")
    if not text:
        raise _bootstrap_error(index, entry, "remove the extra comma")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise _bootstrap_error(index, entry, f"add ':{_DEFAULT_PORT}'?")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        hint = f"put an IPv6 address in brackets: '[{text}]:{_DEFAULT_PORT}'"
        raise _bootstrap_error(index, entry, hint)
    if not host or not all(_may_be_in_host(character) for character in host):
        raise _bootstrap_error(index, entry, f"{host!r} is not a host name")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= _MAX_PORT):
        raise _bootstrap_error(index, entry, f"the port is a number from 1 to {_MAX_PORT}")
    return host, int(port)


def _may_be_in_host(character: str) -> bool:
    return character.isalnum() or character in "-._:%"


def _bootstrap_error(index: int, entry: object, hint: str) -> ConfigError:
    return ConfigError(f"{_NAME}[{index}]: got {entry!r:.80}, expected {_EXPECTED}; {hint}")
