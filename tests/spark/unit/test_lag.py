"""The lag, from what a query tells of itself and from what the brokers tell."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kclient import TopicPartition
from kclient.errors import ConfigError, IllegalStateError
from kclient.spark import spark_version
from kclient.spark.environment.lag import group_lag, lag
from kclient.spark.errors import UnsupportedSparkVersionError
from tests.support.desk import Desk, place


class Progress:
    def __init__(self, *sources: dict[str, Any]) -> None:
        self.json = json.dumps({"sources": sources})


class Query:
    """A query that has told this last."""

    def __init__(self, *sources: dict[str, Any]) -> None:
        self.lastProgress = Progress(*sources) if sources else None  # Spark's name


def told(end: object, latest: object = None) -> dict[str, Any]:
    return {"description": "kclient", "endOffset": end, "latestOffset": latest}


def of(*sources: dict[str, Any], conf: dict[str, object] | None = None) -> Any:
    return lag(Query(*sources), conf)  # type: ignore[arg-type]  # as much of a query as is needed


@pytest.fixture
def on_42(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_version, "spark_version", lambda: "4.2.1")


@pytest.mark.usefixtures("on_42")
def test_the_progress_tells_the_lag_by_partition() -> None:
    found = of(told({"t": {"0": 5, "1": 7}}, {"t": {"0": 5, "1": 17, "2": 4}}))
    assert found == {TopicPartition("t", 0): 0, TopicPartition("t", 1): 10}
    assert found.total == 10
    assert str(found) == "10 behind (t-0: 0, t-1: 10)"


@pytest.mark.usefixtures("on_42")
@pytest.mark.parametrize("text", [json.dumps, str])
def test_a_progress_over_spark_connect_tells_offsets_as_text(text: Callable[[object], str]) -> None:
    found = of(told(text({"t": {"0": 5}}), text({"t": {"0": 8}})), told("rate: {5"))
    assert found == {TopicPartition("t", 0): 3}


@pytest.mark.usefixtures("on_42")
def test_of_several_sources_the_one_further_behind_counts() -> None:
    latest = {"t": {"0": 9}}
    found = of(told({"t": {"0": 5}}, latest), told("rate: 5"), told({"t": {"0": 8}}, latest))
    assert found == {TopicPartition("t", 0): 4}


@pytest.mark.usefixtures("on_42")
def test_what_tells_no_lag_is_refused() -> None:
    with pytest.raises(IllegalStateError, match="has not finished a micro-batch yet"):
        of()
    with pytest.raises(ConfigError, match=r"a query that reads 'kclient'.*, expected one whose"):
        of(told(7, 9))


def test_an_old_spark_tells_no_ends_and_the_brokers_do(
    monkeypatch: pytest.MonkeyPatch, desk: Desk
) -> None:
    monkeypatch.setattr(spark_version, "spark_version", lambda: "4.1.4")
    topic = desk.topic()
    desk.fill(topic, 12)
    with pytest.raises(UnsupportedSparkVersionError, match=r"without conf: got Spark 4.1.4, .*4.2"):
        of(told({topic: {"0": 5}}))
    conf: dict[str, object] = {"bootstrap.servers": desk.bootstrap}
    assert of(told({topic: {"0": 5}}), conf=conf) == {place(topic): 7}


def test_the_commits_of_a_group_tell_its_lag(desk: Desk) -> None:
    topic, group = desk.topic(2), desk.group()
    desk.fill(topic, 5)
    conf: dict[str, object] = {"bootstrap.servers": desk.bootstrap, "fetch.max.wait.ms": 10}
    assert group_lag(conf, group) == {}
    assert str(group_lag(conf, group)) == "0 behind (no partitions)"
    desk.consumer(group).commit({place(topic): 3})
    assert group_lag(conf, group) == {place(topic): 2}
