"""Request log of ``kclient broker``: one line of JSON for each completed request.

The fields are those of Kafka's request log (``kafka.request.logger``) without the bodies of request
and response, and ``receivedNs``: the time at which the request was received, on the monotonic clock
of the machine. Times in milliseconds have six decimals, so that none is rounded.
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kclient.broker.network.request_metrics import STAGE_METRICS, RequestTimes

_FIELDS = dict(
    zip(
        STAGE_METRICS,
        (
            "requestQueueTimeMs",
            "localTimeMs",
            "remoteTimeMs",
            "responseQueueTimeMs",
            "sendTimeMs",
        ),
        strict=True,
    )
) | {"ThrottleTimeMs": "throttleTimeMs", "TotalTimeMs": "totalTimeMs"}


class RequestLog:
    """File of completed requests; each line is written at once.

    Network threads call `write`; a line is one call of the operating system, so that lines of
    several threads do not mix.
    """

    def __init__(self, path: Path) -> None:
        """Open the file for appending.

        Raises:
            OSError: It cannot be opened.
        """
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by __exit__)

    def write(self, times: RequestTimes) -> None:
        """Append the line of a request."""
        self._file.write(json.dumps(_as_fields(times)).encode() + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _as_fields(times: RequestTimes) -> dict[str, Any]:
    header = times.header
    return {
        "requestHeader": {
            "requestApiKey": int(header.api_key),
            "requestApiVersion": header.api_version,
            "correlationId": header.correlation_id,
            "clientId": header.client_id,
            "requestApiKeyName": header.api_key.name,
        },
        "connection": times.connection_id,
        "receivedNs": times.received_ns,
        **{_FIELDS[name]: round(value, 6) for name, value in times.durations_ms().items()},
    }
