"""Offset lookups in the cluster, and their retries."""

import pytest

from kclient.common.broker_errors import TopicAuthorizationError
from kclient.common.errors import BootstrapError, KafkaTimeoutError
from kclient.network.system_runtime import system_runtime
from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets


def cluster(bootstrap: str = "127.0.0.1:1", **given: str) -> ClusterOffsets:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", **given}
    return ClusterOffsets(SourceOptions.parse(options), system_runtime())


class Flaky:
    """Lookup that fails a number of times, then succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return "found"


def test_retriable_errors_are_retried() -> None:
    lookup = Flaky(3, KafkaTimeoutError("late"))
    assert cluster().with_retries(lookup) == "found"
    assert lookup.calls == 4


def test_number_of_retries_is_limited() -> None:
    lookup = Flaky(3, KafkaTimeoutError("late"))
    with pytest.raises(KafkaTimeoutError, match="late"):
        cluster(**{"fetchOffset.numRetries": "2"}).with_retries(lookup)
    assert lookup.calls == 3


def test_retry_interval_is_applied() -> None:
    made = cluster(**{"fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "60"})
    clock = system_runtime().clock
    before_ms = clock.monotonic_ms()
    assert made.with_retries(Flaky(2, KafkaTimeoutError("late"))) == "found"
    assert clock.monotonic_ms() - before_ms >= 120


def test_other_errors_are_not_retried() -> None:
    lookup = Flaky(1, TopicAuthorizationError("t: not authorized"))
    with pytest.raises(TopicAuthorizationError):
        cluster().with_retries(lookup)
    assert lookup.calls == 1


def test_bootstrap_error_before_the_first_response_is_not_retried() -> None:
    made = cluster(**{"kafka.default.api.timeout.ms": "300"})
    lookups = []

    def lookup() -> object:
        lookups.append(1)
        return made.partitions()

    with pytest.raises(BootstrapError, match=r"127\.0\.0\.1:1"):
        made.with_retries(lookup)
    made.close()
    assert len(lookups) == 1


def test_bootstrap_error_after_a_response_is_retried() -> None:
    made = cluster()
    assert made.with_retries(Flaky(0, BootstrapError(""))) == "found"
    lookup = Flaky(3, BootstrapError("away"))
    assert made.with_retries(lookup) == "found"
    assert lookup.calls == 4
