"""Times of requests in the broker, by API."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kclient.broker.network.request_metrics import (
    STAGE_METRICS,
    RequestMetrics,
    RequestTimes,
    request_name,
)
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.headers import RequestHeader
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchResponse
from kclient.testing import EmbeddedCluster
from tests.support.clients.wire import Wire, batch, fetch_request

MS = 1_000_000


def times(api: ApiKey = ApiKey.PRODUCE, *, total_ms: int = 9, handled_ms: int = 0) -> RequestTimes:
    made = RequestTimes("c", RequestHeader(api, 9, 1, "client"))
    made.received_ns, made.dequeued_ns = 100 * MS, 101 * MS
    made.handled_ns = handled_ms * MS
    made.completed_ns, made.response_dequeued_ns = 106 * MS, 107 * MS
    made.sent_ns = (100 + total_ms) * MS
    return made


@pytest.fixture
def seen(cluster: EmbeddedCluster) -> Iterator[list[RequestTimes]]:
    """The requests that the module's broker completes during the test."""
    found: list[RequestTimes] = []
    cluster.broker.observe_requests(found.append)
    yield found
    cluster.broker.observe_requests(None)


def completed(seen: list[RequestTimes], wire: Wire, api: ApiKey) -> RequestTimes:
    """Return the last request of an API, once the broker has recorded its response as sent."""
    wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)  # the connection is served in order
    return next(each for each in reversed(seen) if each.header.api_key is api)


def test_request_with_a_response_from_its_handler_has_no_remote_time() -> None:
    assert times().durations_ms() == {
        "RequestQueueTimeMs": 1.0,
        "LocalTimeMs": 5.0,
        "RemoteTimeMs": 0.0,
        "ResponseQueueTimeMs": 1.0,
        "ResponseSendTimeMs": 2.0,
        "ThrottleTimeMs": 0.0,
        "TotalTimeMs": 9.0,
    }


def test_remote_time_starts_at_the_end_of_the_handler() -> None:
    durations = times(handled_ms=103).durations_ms()
    assert durations["LocalTimeMs"] == 2.0
    assert durations["RemoteTimeMs"] == 3.0


def test_handler_that_ends_after_the_completion_has_no_remote_time() -> None:
    assert times(handled_ms=200).points_ns()[2] == 106 * MS


def test_request_completed_before_its_handler_has_only_queue_time() -> None:
    refused = times()
    refused.dequeued_ns = 0
    durations = refused.durations_ms()
    assert (durations["RequestQueueTimeMs"], durations["LocalTimeMs"]) == (6.0, 0.0)


def test_snapshot_counts_all_requests_and_describes_the_recent_ones() -> None:
    metrics = RequestMetrics(time.monotonic_ns, threading.Lock())
    metrics.update(times(total_ms=500))
    for _ in range(2000):
        metrics.update(times(total_ms=9))
    metrics.update(times(ApiKey.LIST_OFFSETS, total_ms=20))
    found = metrics.snapshot()
    assert set(found) == {"Produce", "ListOffsets"}
    total = found["Produce"]["TotalTimeMs"]
    assert total.count == 2001
    assert (total.minimum, total.p50, total.p999, total.maximum) == (9.0, 9.0, 9.0, 9.0)
    assert found["ListOffsets"]["TotalTimeMs"].mean == 20.0


def test_fetches_of_consumers_and_followers_are_also_counted_apart() -> None:
    metrics = RequestMetrics(time.monotonic_ns, threading.Lock())
    for total_ms in (9, 10, 11):
        metrics.update(times(ApiKey.FETCH, total_ms=total_ms))
    follower = times(ApiKey.FETCH, total_ms=99)
    follower.from_follower = True
    metrics.update(follower)
    found = metrics.snapshot()
    largest = {
        name: (each["TotalTimeMs"].count, each["TotalTimeMs"].maximum)
        for name, each in found.items()
    }
    assert largest == {"Fetch": (4, 99.0), "FetchConsumer": (3, 11.0), "FetchFollower": (1, 99.0)}


def test_names_are_those_of_kafka() -> None:
    assert request_name(ApiKey.OFFSET_COMMIT) == "OffsetCommit"
    assert request_name(ApiKey.API_VERSIONS) == "ApiVersions"


def test_points_of_a_served_request_are_ordered_and_add_up(
    wire: Wire, topic: str, seen: list[RequestTimes]
) -> None:
    before_ns = time.monotonic_ns()
    wire.produce(topic, batch([b"a"]))
    request = completed(seen, wire, ApiKey.PRODUCE)
    points = (before_ns, *request.points_ns(), time.monotonic_ns())
    assert all(start <= end for start, end in pairwise(points))
    durations = request.durations_ms()
    stages = sum(durations[name] for name in STAGE_METRICS)
    assert stages == pytest.approx(durations["TotalTimeMs"], abs=1e-6)
    assert durations["LocalTimeMs"] > 0.0


def test_fetch_that_waits_has_the_wait_as_remote_time(
    wire: Wire, topic: str, seen: list[RequestTimes]
) -> None:
    wire.send(fetch_request(topic, 0, max_wait_ms=200), 12)
    wire.receive(FetchResponse, 12)
    durations = completed(seen, wire, ApiKey.FETCH).durations_ms()
    assert durations["RemoteTimeMs"] >= 190.0
    assert durations["LocalTimeMs"] < durations["RemoteTimeMs"]


def test_broker_returns_the_metrics_of_its_requests(cluster: EmbeddedCluster, wire: Wire) -> None:
    count = 3
    before = cluster.broker.request_metrics().get("ApiVersions", {}).get("TotalTimeMs")
    for _ in range(count + 1):  # a response may arrive before the broker records it as sent
        wire.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
    after = cluster.broker.request_metrics()["ApiVersions"]["TotalTimeMs"]
    assert after.count - (0 if before is None else before.count) >= count
    assert 0.0 < after.minimum <= after.p50 <= after.p99 <= after.maximum


def test_requests_handled_by_other_threads_wait_in_the_queue() -> None:
    found: list[RequestTimes] = []
    with EmbeddedCluster(config={"num.io.threads": 2}) as cluster:
        cluster.broker.observe_requests(found.append)
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            wire.produce("t", batch([b"a"]))
            request = completed(found, wire, ApiKey.PRODUCE)
    assert request.received_ns < request.dequeued_ns < request.completed_ns
