"""Metrics of group requests (Kafka: ConsumerCoordinatorMetrics)."""

import math
from collections.abc import Callable

from kclient.client.client_request import ClientResponse
from kclient.common.metrics import Metrics, Sensor
from kclient.protocol.api_keys import ApiKey

_NAMES = {
    ApiKey.OFFSET_COMMIT: "commit",
    ApiKey.JOIN_GROUP: "join",
    ApiKey.SYNC_GROUP: "sync",
    ApiKey.HEARTBEAT: "heartbeat",
}
_TIMES = {
    "commit": ("commit-latency-avg", "commit-latency-max"),
    "join": ("join-time-avg", "join-time-max"),
    "sync": ("sync-time-avg", "sync-time-max"),
    "heartbeat": (None, "heartbeat-response-time-max"),
}


class ConsumerRequestMetrics:
    """Records rate, total and latency of the responses to group requests."""

    def __init__(self, metrics: Metrics) -> None:
        self._sensors: dict[ApiKey, tuple[Sensor, Sensor]] = {}
        self._last_heartbeat_ms = math.nan
        for api, name in _NAMES.items():
            average, maximum = _TIMES[name]
            self._sensors[api] = (
                metrics.sensor(rate=f"{name}-rate", total=f"{name}-total"),
                metrics.sensor(average=average, maximum=maximum),
            )

    def record(self, response: ClientResponse) -> None:
        """Record a response, successful or not."""
        sensors = self._sensors.get(response.api_key)
        if sensors is not None:
            count, time_ms = sensors
            count.record()
            time_ms.record(response.latency_ms)
            if response.api_key is ApiKey.HEARTBEAT:
                self._last_heartbeat_ms = response.received_ms

    def last_heartbeat_ms(self) -> float:
        """Return the time of the last heartbeat response, NaN if there was none."""
        return self._last_heartbeat_ms


def seconds_since(read_ms: Callable[[], float], now_ms: Callable[[], float]) -> Callable[[], float]:
    """Return a gauge of the seconds since a time, NaN if there is none."""
    return lambda: (now_ms() - read_ms()) / 1000.0
