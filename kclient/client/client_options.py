"""Types of the options common to all clients, for type checkers."""

from collections.abc import Sequence
from typing import Literal, TypedDict


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
