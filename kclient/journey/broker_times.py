"""Times of requests in a companion broker, by client and correlation id."""

import json
from collections.abc import Iterable

from kclient.broker.network.request_metrics import RequestTimes
from kclient.protocol.api_keys import ApiKey

_CAPACITY = 200_000
_KEPT = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT})
_STAGE_FIELDS = ("requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "responseQueueTimeMs")
_NS_PER_MS = 1_000_000

Points = tuple[int, ...]
"""Received, dequeued, handled, completed, response dequeued: monotonic nanoseconds."""


class BrokerTimes:
    """Times of recent requests of producers and consumers.

    They are compared with times of the clients, so that broker and clients must run on one machine:
    its processes share the monotonic clock.
    """

    def __init__(self) -> None:
        self._points: dict[tuple[ApiKey, str | None, int], Points] = {}

    def observe(self, times: RequestTimes) -> None:
        """Add a request of a broker in this process; network threads of the broker call it."""
        header = times.header
        self._add(header.api_key, header.client_id, header.correlation_id, times.points_ns()[:-1])

    def read_log(self, lines: Iterable[str]) -> None:
        """Add the requests of a request log, which ``kclient broker --request-log`` writes.

        Raises:
            ValueError: A line is not one of a request log.
        """
        for line in lines:
            fields = json.loads(line)
            header = fields["requestHeader"]
            point = fields["receivedNs"]
            points = [point]
            for name in _STAGE_FIELDS:
                point += round(fields[name] * _NS_PER_MS)
                points.append(point)
            self._add(
                ApiKey(header["requestApiKey"]),
                header["clientId"],
                header["correlationId"],
                tuple(points),
            )

    def between(
        self, api: ApiKey, client_id: str, correlation_id: int, start_ns: int, end_ns: int
    ) -> Points | None:
        """Return the points of a request that was in the broker between two times, or None.

        Args:
            api: API.
            client_id: Client id.
            correlation_id: Correlation id, which another connection of the id may have used, too.
            start_ns: The request was written after it.
            end_ns: The response was read before it.
        """
        points = self._points.get((api, client_id, correlation_id))
        if points is None or not start_ns <= points[0] <= points[-1] <= end_ns:
            return None
        return points

    def __len__(self) -> int:
        return len(self._points)

    def _add(self, api: ApiKey, client_id: str | None, correlation_id: int, points: Points) -> None:
        if api in _KEPT:
            if len(self._points) >= _CAPACITY:
                self._points.pop(next(iter(self._points)), None)
            self._points[api, client_id, correlation_id] = points
