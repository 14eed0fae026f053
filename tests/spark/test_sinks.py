"""Sink functions without a session: arguments, and what they pass to Spark."""

from types import SimpleNamespace
from typing import Any, Self

import pytest
from pyspark.sql import types as T

from kclient.common.errors import ConfigError
from kclient.spark import sinks
from kclient.spark.data_source import KclientDataSource
from kclient.spark.options.sink_options import FOREACH_BATCH_ID
from kclient.spark.sink.column_plan import ColumnSelection
from kclient.spark.sink.write_report import WriteReport
from kclient.spark.sinks import foreach_batch_sink, foreach_partition_sink, write_partitions

CONF = {"bootstrap.servers": "h:1", "enable.idempotence": True, "linger.ms": 5}
VALUE = T.StructType([T.StructField("value", T.BinaryType())])


class Frame:
    """A DataFrame whose jobs return given rows, and that notes how it is written.

    Attributes:
        options: Options of the write.
        registered: Data sources that were registered.
    """

    def __init__(self, rows: list[tuple[int, int, int, int]] | None = None) -> None:
        self.schema = VALUE
        self.rows = rows or []
        self.options_given: dict[str, str] = {}
        self.registered: list[object] = []
        self.saved = ""
        sources = SimpleNamespace(register=self.registered.append)
        self.sparkSession = SimpleNamespace(dataSource=sources)
        self.write = self
        self.mapInArrow = lambda *_: self

    def collect(self) -> list[tuple[int, int, int, int]]:
        return self.rows

    def format(self, name: str) -> Self:
        self.saved = name
        return self

    def mode(self, name: str) -> Self:
        assert name == "append"
        return self

    def options(self, **given: str) -> Self:
        self.options_given = given
        return self

    def save(self) -> None:
        assert self.saved == "kclient"


@pytest.fixture(autouse=True)
def without_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the columns of frames as they are: Spark's need a running session."""
    monkeypatch.setattr(ColumnSelection, "checked_plan", lambda *_: Plan())


class Plan:
    def renamed(self) -> Any:
        return self

    def renaming(self, frame: Frame) -> Frame:
        return frame


def test_counts_of_all_tasks_are_returned() -> None:
    frame: Any = Frame([(1, 0, 5, 50), (0, 2, 7, 70)])
    report = write_partitions(frame, CONF, "t")
    assert report == WriteReport(rows=12, bytes=120, partitions={0: 7, 1: 5})


def test_missing_pandas_is_named_before_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(sinks, "import_module", fail)
    frame: Any = Frame()
    with pytest.raises(ConfigError, match=r"df\.write\.format\('kclient'\), which works without"):
        write_partitions(frame, CONF, "t")


def test_micro_batch_is_written_with_options_of_the_data_source() -> None:
    frame: Any = Frame()
    foreach_batch_sink(CONF, topic="t", flush_timeout=0.25)(frame, 12)
    options = dict(frame.options_given)
    assert options.pop(FOREACH_BATCH_ID) == "12"
    assert options["topic"] == "t"
    assert options["deliveryTimeoutMs"] == "250"
    assert options["kafka.bootstrap.servers"] == "h:1"
    assert options["kafka.enable.idempotence"] == "true"
    assert options["kafka.linger.ms"] == "5"


def test_micro_batch_is_written_exactly_once_with_the_id_of_the_sink() -> None:
    frame: Any = Frame()
    sink = foreach_batch_sink(
        CONF, topic="t", delivery="exactly-once", sink_id="s", transactional_id_prefix="p"
    )
    sink(frame, 12)
    assert frame.options_given.items() >= {
        ("delivery", "exactly-once"), ("sinkId", "s"), ("transactionalIdPrefix", "p"),
    }  # fmt: skip
    with pytest.raises(ConfigError, match="sink_id: got nothing, expected an id"):
        foreach_batch_sink(CONF, topic="t", delivery="exactly-once")
    with pytest.raises(TypeError, match="write_id"):
        foreach_batch_sink(CONF, topic="t", write_id="w")  # type: ignore[call-arg]  # a table's


def test_micro_batch_is_mapped_without_python_data_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sinks, "supports", lambda _: False)
    frame: Any = Frame([(0, 0, 5, 50)])
    tasks: list[Any] = []

    def map_in_arrow(task: Any, _: str) -> Any:
        tasks.append(task)
        return frame

    frame.mapInArrow = map_in_arrow
    sink = foreach_batch_sink(CONF, topic="t", delivery="exactly-once", sink_id="s")
    sink(frame, 12)
    assert frame.saved == ""
    assert [task._batch_id for task in tasks] == [12]


@pytest.mark.parametrize("finds", [True, False])
def test_data_source_is_registered_only_if_spark_does_not_find_it(
    finds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "finds_data_source", lambda: finds)
    frame: Any = Frame()
    foreach_batch_sink(CONF)(frame, 0)
    assert frame.registered == ([] if finds else [KclientDataSource])


@pytest.mark.parametrize("sink", [foreach_batch_sink, foreach_partition_sink])
def test_unknown_arguments_are_refused(sink: Any) -> None:
    with pytest.raises(TypeError, match="keys"):
        sink(CONF, topic="t", keys="k")
    with pytest.raises(TypeError, match="argument 'topics'; use topic=, one name"):
        sink(CONF, topics=["t"])


@pytest.mark.parametrize("sink", [foreach_batch_sink, foreach_partition_sink])
def test_description_of_a_sink_has_no_secret(sink: Any) -> None:
    shown = repr(sink({**CONF, "client.id": "hunter2"}, topic="t"))
    assert "hunter2" not in shown
    assert "'t'" in shown
