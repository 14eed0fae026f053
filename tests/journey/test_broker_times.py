"""Times of requests in a broker, by client and correlation id."""

from pathlib import Path

import pytest

from kclient.broker.network.request_metrics import RequestTimes
from kclient.cli.request_log import RequestLog
from kclient.journey.broker_times import BrokerTimes
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader

POINTS = (1_000_000, 1_000_007, 2_000_000, 2_500_001, 2_500_003)


def times(api: ApiKey = ApiKey.PRODUCE, correlation_id: int = 5) -> RequestTimes:
    made = RequestTimes("c", RequestHeader(api, 12, correlation_id, "shop"))
    made.received_ns, made.dequeued_ns, made.handled_ns = POINTS[:3]
    made.completed_ns, made.response_dequeued_ns = POINTS[3:]
    made.sent_ns = 9_000_000
    return made


def test_request_log_gives_the_same_points_as_the_broker_in_this_process(tmp_path: Path) -> None:
    observed, logged = BrokerTimes(), BrokerTimes()
    observed.observe(times())
    with RequestLog(tmp_path / "log") as log:
        log.write(times())
    logged.read_log((tmp_path / "log").read_text().splitlines())
    for each in (observed, logged):
        assert each.between(ApiKey.PRODUCE, "shop", 5, 0, 10**9) == POINTS


@pytest.mark.parametrize(
    ("client_id", "correlation_id", "start_ns", "end_ns"),
    [
        ("other", 5, 0, 10**9),
        ("shop", 6, 0, 10**9),
        ("shop", 5, POINTS[0] + 1, 10**9),
        ("shop", 5, 0, POINTS[-1] - 1),
    ],
    ids=["client", "correlation id", "received before it was written", "sent after it was read"],
)
def test_points_of_another_request_are_not_used(
    client_id: str, correlation_id: int, start_ns: int, end_ns: int
) -> None:
    observed = BrokerTimes()
    observed.observe(times())
    found = observed.between(ApiKey.PRODUCE, client_id, correlation_id, start_ns, end_ns)
    assert found is None


def test_requests_that_no_stage_needs_are_not_kept() -> None:
    observed = BrokerTimes()
    observed.observe(times(ApiKey.METADATA))
    assert len(observed) == 0


def test_oldest_times_are_dropped_at_the_capacity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kclient.journey.broker_times._CAPACITY", 2)
    observed = BrokerTimes()
    for number in range(3):
        observed.observe(times(correlation_id=number))
    assert len(observed) == 2
    assert observed.between(ApiKey.PRODUCE, "shop", 0, 0, 10**9) is None
    assert observed.between(ApiKey.PRODUCE, "shop", 2, 0, 10**9) == POINTS
