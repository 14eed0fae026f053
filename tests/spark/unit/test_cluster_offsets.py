"""What the planner asks the cluster, again where that may help."""

import pytest

from kclient.common.broker_errors import TopicAuthorizationError
from kclient.common.errors import BootstrapError, KafkaTimeoutError
from kclient.network.system_runtime import system_runtime
from kclient.spark.options import SourceOptions
from kclient.spark.source.cluster_offsets import ClusterOffsets


def cluster(bootstrap: str = "127.0.0.1:1", **given: str) -> ClusterOffsets:
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", **given}
    return ClusterOffsets(SourceOptions.parse(options), system_runtime())


class Flaky:
    """Fails so often, and then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error
        return "answer"


def test_what_may_pass_is_asked_for_again() -> None:
    ask = Flaky(3, KafkaTimeoutError("late"))
    assert cluster().retried(ask) == "answer"
    assert ask.calls == 4


def test_not_more_often_than_the_option_says() -> None:
    ask = Flaky(3, KafkaTimeoutError("late"))
    with pytest.raises(KafkaTimeoutError, match="late"):
        cluster(**{"fetchOffset.numRetries": "2"}).retried(ask)
    assert ask.calls == 3


def test_repetitions_are_as_far_apart_as_the_option_says() -> None:
    made = cluster(**{"fetchOffset.numRetries": "2", "fetchOffset.retryIntervalMs": "60"})
    clock = system_runtime().clock
    before_ms = clock.monotonic_ms()
    assert made.retried(Flaky(2, KafkaTimeoutError("late"))) == "answer"
    assert clock.monotonic_ms() - before_ms >= 120


def test_what_will_not_pass_is_not_asked_for_again() -> None:
    ask = Flaky(1, TopicAuthorizationError("t: may not be read"))
    with pytest.raises(TopicAuthorizationError):
        cluster().retried(ask)
    assert ask.calls == 1


def test_a_cluster_that_was_never_reached_is_named_and_not_asked_again() -> None:
    made = cluster(**{"kafka.default.api.timeout.ms": "300"})
    asked = []

    def ask() -> object:
        asked.append(1)
        return made.partitions()

    with pytest.raises(BootstrapError, match=r"127\.0\.0\.1:1"):
        made.retried(ask)
    made.close()
    assert len(asked) == 1


def test_a_cluster_that_has_answered_before_is_asked_again() -> None:
    made = cluster()
    assert made.retried(Flaky(0, BootstrapError(""))) == "answer"
    ask = Flaky(3, BootstrapError("away"))
    assert made.retried(ask) == "answer"
    assert ask.calls == 4
