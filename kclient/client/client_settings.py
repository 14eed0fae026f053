"""Settings of a network client."""

from dataclasses import dataclass


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
