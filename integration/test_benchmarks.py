"""Short runs of the benchmark, and its checks of the measured counts."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from integration.benchmarks import pairs, recovery
from integration.benchmarks.contenders import CONTENDERS, Contender, contender
from integration.benchmarks.measuring import CellError, check_claim, run_cell
from integration.benchmarks.report import as_json, head, ratios, table
from integration.benchmarks.runner import Row, Runner, Settings
from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import RunningSink, sink
from integration.benchmarks.workload import (
    CONSUME,
    PRODUCE,
    Measurement,
    Workload,
    distinct_values,
)
from integration.harness.running_kafka import RunningKafka
from tests.support.checks.waiting import HarnessError

PEERS = ["confluent-kafka", "kafka-python"]
SETTINGS = Settings(
    sizes=[100], rounds=2, scale=0.05, partitions=2, acks="all", linger_ms=5, batch_bytes=65536
)


@pytest.fixture(scope="module")
def running_sink() -> Iterator[RunningSink]:
    with sink() as found:
        yield found


@pytest.mark.campaign
@pytest.mark.parametrize("operation", [PRODUCE, CONSUME])
def test_short_run(kafka: RunningKafka, operation: str) -> None:
    peers = [contender(operation, name) for name in PEERS]
    runner = Runner(kafka, SETTINGS, lambda _: None)
    runner.check(peers)
    rows = runner.measure(operation, 100, peers)
    assert [len(row.measurements) for row in rows] == [2, 2]
    lines = table(rows).splitlines()
    assert lines[0] == f"{operation}, 100 B"
    assert [line.split()[0] for line in lines[2:]] == PEERS
    assert kafka.version in head(PEERS, kafka.version, SETTINGS)
    assert '"contender": "kafka-python"' in as_json(rows, kafka.version, SETTINGS)


def test_starts_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    recovery.main(["--mebibytes", "2", "--rounds", "1"])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row[:22].strip() for row in rows] == [story.name for story in recovery.STORIES]
    for row in rows:
        mebibytes, batches, *seconds = row[22:].replace(",", "").split()
        assert mebibytes == "2"
        assert int(batches) > 100
        assert min(map(float, seconds)) >= 0


def _load(kafka: RunningKafka, operation: str, topic: str) -> Workload:
    return Workload(
        operation, "confluent-kafka", kafka.bootstrap, topic, 2, 1000, 100, "all", 5, 65536
    )


def test_wrong_record_count_is_found(kafka: RunningKafka) -> None:
    topic = kafka.create_topic(2)
    load = _load(kafka, PRODUCE, topic)
    produced = run_cell(load)
    with pytest.raises(CellError, match="claimed: got 999, expected 1000"):
        check_claim(load, replace(produced, claimed=999))
    reading = _load(kafka, CONSUME, topic)
    consumed = run_cell(reading)
    with pytest.raises(CellError, match="sum of offsets"):
        check_claim(reading, replace(consumed, offset_sum=consumed.offset_sum - 1))


def test_failing_cell_fails_the_run(kafka: RunningKafka) -> None:
    with pytest.raises(CellError, match="failed"):
        run_cell(replace(_load(kafka, PRODUCE, "a topic with an illegal name"), partitions=1))


def test_ratios_are_computed_per_round() -> None:
    def row(name: str, *speeds: float) -> Row:
        made = Row(contender(PRODUCE, name), 100)
        made.measurements += [Measurement(1000, 1000, 1000 / speed, 1, 0) for speed in speeds]
        return made

    rate, cpu = ratios(row("aiokafka", 10, 20, 90), row("confluent-kafka", 20, 20, 30))
    assert (rate.lowest, rate.median, rate.highest) == pytest.approx((0.5, 1.0, 3.0))
    assert cpu.median == 1.0


def test_values_have_the_configured_size_and_contenders_a_peer() -> None:
    for size in (100, 1024):
        assert {len(value) for value in distinct_values(size)} == {size}
    for one in CONTENDERS:
        assert contender(one.operation, one.against).against == one.against


def test_intervals_enclose_the_median_and_shrink_with_more_values() -> None:
    assert pairs.median_interval([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    hundred = pairs.median_interval([float(each) for each in range(100)])
    assert hundred == Spread(49.5, 40.0, 60.0)


def test_this_tree_is_compared_with_itself(
    kafka: RunningKafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KCLIENT_KAFKA_BOOTSTRAP", kafka.bootstrap)
    names = ["--only", "kclient send_many", "kclient columns"]
    pairs.main([str(pairs.PROJECT), *names, "--sizes", "100", "--slices", "2", "--scale", "0.01"])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row[:44].strip() for row in rows] == [
        "produce 100 B: kclient send_many",
        "consume 100 B: kclient columns",
    ]
    for each in rows:
        figures = [float(cell) for cell in each[44:].replace("..", " ").split()]
        assert len(figures) == 9
        assert min(figures) > 0


def test_trees_are_compared_on_the_sink(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "kclient no future kept", "--sizes", "1024", "--defaults", "--sink"]
    pairs.main([str(pairs.PROJECT), *only, "--slices", "2", "--scale", "0.01"])
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert row.startswith("produce 1024 B: kclient no future kept")


@pytest.mark.campaign
@pytest.mark.parametrize("one", CONTENDERS, ids=lambda one: f"{one.operation} by {one.name}")
@pytest.mark.parametrize("defaults", [False, True], ids=["tuned", "default"])
def test_contenders_deliver_to_the_sink(
    running_sink: RunningSink, one: Contender, *, defaults: bool
) -> None:
    settings = replace(SETTINGS, defaults=defaults)
    Runner(running_sink, settings, lambda _: None).check([one])


def test_base_is_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="expected a checkout of kclient"):
        pairs.main([str(tmp_path)])
