"""Configuration common to producers, consumers and admin clients."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from kclient.common.config_def import REQUIRED, ConfigType, describe
from kclient.common.config_keys import INT_MAX, choice, key, switch, text, whole_number
from kclient.common.errors import ConfigError
from kclient.common.runtime import Address
from kclient.network.security_config import SecurityConfig, SecurityOptions

_NAME = "bootstrap_servers"
_EXPECTED = "'host:port'"
_DEFAULT_PORT = 9092
_MAX_PORT = 65535
# Azure drops connections that are idle for 240 s, without notice.
_IDLE_LIMITS_MS = {".servicebus.windows.net": 230_000}
_PLAIN_SCHEMES = frozenset({"PLAINTEXT", "KAFKA"})


def parse_bootstrap_servers(given: object, name: str = _NAME) -> tuple[Address, ...]:
    """Return names and ports from ``"host:port,host:port"`` or a sequence of ``"host:port"``.

    An IPv6 address is in brackets: ``[::1]:9092``. The scheme of a listener, ``PLAINTEXT://``, or
    ``kafka://`` may precede the host. Host names are not looked up. `name` is that of the option.

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
            f"{name}: got {describe(given)}, expected 'host:port[,host:port]' or a list{hint}"
        )
    if not entries or entries == [""]:
        raise ConfigError(f"{name}: got {describe(given)}, expected at least one {_EXPECTED}")
    parsed = [_parse_server(f"{name}[{index}]", entry) for index, entry in enumerate(entries)]
    return tuple(dict.fromkeys(parsed))


def _parse_server(what: str, entry: object) -> Address:
    if not isinstance(entry, str):
        raise _bootstrap_error(what, entry, f"it is of type {type(entry).__name__}")
    text = _without_scheme(what, entry)
    if not text:
        raise _bootstrap_error(what, entry, "remove the extra comma")
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise _bootstrap_error(what, entry, f"add ':{_DEFAULT_PORT}'?")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        hint = f"put an IPv6 address in brackets: '[{text}]:{_DEFAULT_PORT}'"
        raise _bootstrap_error(what, entry, hint)
    if not host or not all(_may_be_in_host(character) for character in host):
        raise _bootstrap_error(what, entry, f"{host!r} is not a host name")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= _MAX_PORT):
        raise _bootstrap_error(what, entry, f"the port is a number from 1 to {_MAX_PORT}")
    return host, int(port)


def _without_scheme(what: str, entry: str) -> str:
    scheme, separator, rest = entry.strip().partition("://")
    if not separator:
        return scheme
    if _is_secure(scheme):
        # Never continue without the security that was configured.
        hint = f"remove '{scheme}://' and set security_protocol"
        raise _bootstrap_error(what, entry, hint)
    if scheme.upper() not in _PLAIN_SCHEMES:
        raise _bootstrap_error(what, entry, "remove the part up to '://'")
    return rest


def _is_secure(scheme: str) -> bool:
    """Return whether a scheme, as in ``kafka+ssl://``, means TLS or SASL."""
    return bool({"SSL", "TLS", "SASL"}.intersection(re.split("[_+]", scheme.upper())))


def _may_be_in_host(character: str) -> bool:
    return character.isalnum() or character in "-._:%"


def _bootstrap_error(what: str, entry: object, hint: str) -> ConfigError:
    return ConfigError(f"{what}: got {entry!r:.80}, expected {_EXPECTED}; {hint}")


ADDRESSES = "'host:port[,host:port]' or a list of 'host:port'"
"""Form of bootstrap addresses."""


def bootstrap_servers_key(default: Any) -> Sequence[Address]:
    """Declare ``bootstrap.servers``, which not every client requires."""
    return key(
        "bootstrap.servers",
        ConfigType.LIST,
        parse_bootstrap_servers,
        ADDRESSES,
        default,
        "Brokers to connect to first; the first response names all others.",
    )


def receive_buffer_key(default: int) -> int:
    """Declare ``receive.buffer.bytes``, whose default differs by client."""
    return whole_number(
        "receive.buffer.bytes",
        default,
        "Size of the socket's receive buffer; -1 leaves it to the operating system.",
        low=-1,
    )


def max_idle_key(default: int) -> int:
    """Declare ``connections.max.idle.ms``, whose default differs by client."""
    return whole_number(
        "connections.max.idle.ms",
        default,
        "Connections that have been idle for this time are closed.",
    )


class ClientConfig(SecurityConfig):
    """Configuration common to all clients, with Kafka's defaults except for socket buffers.

    Kafka's sizes of the buffers, 64 and 128 KiB, keep the operating system from adapting them to
    the connection: on loopback, responses of 1 MiB take twice as long with 64 KiB.
    """

    bootstrap_servers: Sequence[Address] = bootstrap_servers_key(REQUIRED)
    client_id: str | None = text(
        "client.id", None, "Name of this client in the brokers' logs, metrics and quotas."
    )
    client_dns_lookup: str = choice(
        "client.dns.lookup",
        "use_all_dns_ips",
        {"use_all_dns_ips": "use_all_dns_ips"},
        "All addresses of a name are tried, in the resolver's order.",
    )
    request_timeout_ms: int = whole_number(
        "request.timeout.ms",
        30_000,
        "Time after which a request without a response is retried on a new connection.",
    )
    socket_connection_setup_timeout_ms: int = whole_number(
        "socket.connection.setup.timeout.ms",
        10_000,
        "Timeout of the first connection attempt; doubles with each failure.",
    )
    socket_connection_setup_timeout_max_ms: int = whole_number(
        "socket.connection.setup.timeout.max.ms",
        30_000,
        "Longest timeout of a connection attempt.",
    )
    connections_max_idle_ms: int = max_idle_key(540_000)
    send_buffer_bytes: int = whole_number(
        "send.buffer.bytes",
        -1,
        "Size of the socket's send buffer; -1 leaves it to the operating system.",
        low=-1,
    )
    receive_buffer_bytes: int = receive_buffer_key(-1)
    receive_message_max_bytes: int = whole_number(
        "receive.message.max.bytes",
        100 * 1024 * 1024,
        "Largest response; a larger one closes the connection. Not a key of the Java client.",
        low=1000,
        high=INT_MAX,
    )
    reconnect_backoff_ms: int = whole_number(
        "reconnect.backoff.ms",
        50,
        "Wait before connecting to a broker again; doubles with each failure.",
    )
    reconnect_backoff_max_ms: int = whole_number(
        "reconnect.backoff.max.ms",
        1000,
        "Longest wait before connecting to a broker again; up to 20 % are added at random.",
    )
    retry_backoff_ms: int = whole_number(
        "retry.backoff.ms",
        100,
        "Wait before a failed request is retried; doubles with each failure.",
    )
    retry_backoff_max_ms: int = whole_number(
        "retry.backoff.max.ms",
        1000,
        "Longest wait before a failed request is retried; up to 20 % are added at random.",
    )
    metadata_max_age_ms: int = whole_number(
        "metadata.max.age.ms",
        300_000,
        "Age after which metadata is updated even if no change is known.",
    )
    metadata_recovery_strategy: str = choice(
        "metadata.recovery.strategy",
        "rebootstrap",
        {"rebootstrap": "rebootstrap", "none": "none"},
        "What to do if no known broker is reachable: rebootstrap, or keep trying them.",
    )
    metadata_recovery_rebootstrap_trigger_ms: int = whole_number(
        "metadata.recovery.rebootstrap.trigger.ms",
        300_000,
        "Time without a metadata response after which the client rebootstraps.",
    )

    metadata_cluster_check_enable: bool = switch(
        "metadata.cluster.check.enable",
        "Whether brokers from 4.4 on check that a connection is meant for them and their cluster; "
        "if not, as after an address was reused, the client rebootstraps (KIP-1242). Without "
        "effect if metadata.recovery.strategy=none.",
        default=True,
    )

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other."""
        del given
        self.check_security()
        return self

    @property
    def idle_limit_ms(self) -> int:
        """Time after which idle connections are closed, before the service drops them."""
        hosts = [host.lower().removesuffix(".") for host, _ in self.bootstrap_servers]
        limits = [
            limit_ms
            for domain, limit_ms in _IDLE_LIMITS_MS.items()
            if any(host.endswith(domain) for host in hosts)
        ]
        return min([self.connections_max_idle_ms, *limits])

    @property
    def checks_cluster(self) -> bool:
        """Whether brokers check that they are the expected broker of the expected cluster."""
        return self.metadata_cluster_check_enable and self.rebootstraps

    @property
    def rebootstraps(self) -> bool:
        """Whether to rebootstrap when no known broker is usable."""
        return self.metadata_recovery_strategy == "rebootstrap"


class ClientOptions(SecurityOptions, total=False):
    """Keyword options of every client; docs/reference/configuration.md describes them.

    Times are milliseconds, sizes are bytes.
    """

    bootstrap_servers: str | Sequence[str]
    client_id: str | None
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
    metadata_cluster_check_enable: bool
