"""The benchmark with Spark: a short run, the sinks of the other clients, and its statistics."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from integration.benchmarks.measuring import CellError
from integration.benchmarks.spark.__main__ import arguments, chosen_contenders
from integration.benchmarks.spark.confluent_sinks import (
    NotDeliveredError,
    Settings,
    foreach_partition,
    map_in_arrow,
    worker_producer,
)
from integration.benchmarks.spark.connector_jars import check_set
from integration.benchmarks.spark.contenders import (
    ARROW,
    COPY,
    READ,
    WRITE,
    Contender,
    Operation,
)
from integration.benchmarks.spark.cpu_ledger import CpuLedger
from integration.benchmarks.spark.picture import bars, picture
from integration.benchmarks.spark.plan import Plan
from integration.benchmarks.spark.report import as_json, head, opponent, ratios, table
from integration.benchmarks.spark.runner import Outcome, Row, Run, Runner
from integration.benchmarks.spark.workbench import Workbench
from integration.harness.running_kafka import RunningKafka
from tests.support.checks.waiting import HarnessError
from tests.support.clients.foreign_confluent import ConfluentClient

_PROJECT = Path(__file__).parents[2]
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.campaign
def test_short_run(kafka: RunningKafka, tmp_path: Path) -> None:
    """Run the program without Spark's connector, which would need jars."""
    results, command = (
        tmp_path / "results.json",
        [sys.executable, "-m", "integration.benchmarks.spark"],
    )
    command += [
        "--no-connector",
        "--rows",
        "4000",
        "--warm",
        "0",
        "--rounds",
        "1",
        "--partitions",
        "2",
    ]
    done = subprocess.run(
        [*command, "--json", str(results)],
        check=False,
        capture_output=True,
        text=True,
        cwd=_PROJECT,
        env={**_environment(), "KCLIENT_KAFKA_BOOTSTRAP": kafka.bootstrap},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    measured = json.loads(results.read_text())
    expected = [
        (one.operation.name, one.name) for one in chosen_contenders(arguments(["--no-connector"]))
    ]
    assert [(row["operation"], row["contender"]) for row in measured["rows"]] == expected
    assert {row["runs"][0]["rows"] for row in measured["rows"]} == {2000, 4000}
    assert all(run["cpu_seconds"] > 0 for row in measured["rows"] for run in row["runs"])
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [tuple(line.split(" | ")[:2]) for line in lines[1:]] == [
        (f"| {operation}", name) for operation, name in expected
    ]
    assert _parsed(picture(measured)).tag == f"{_SVG}svg"


def _parsed(document: str) -> ET.Element:
    return ET.fromstring(document)  # noqa: S314  # trusted input


def _environment() -> dict[str, str]:
    """Returns the variables of this process without those for Spark."""
    return {name: value for name, value in os.environ.items() if "SPARK" not in name}


def _rejecting(kafka: RunningKafka) -> str:
    """Returns a topic that rejects all but tiny records."""
    return kafka.create_topic(1, {"max.message.bytes": "80"})


def _settings(kafka: RunningKafka, **more: int) -> Settings:
    safe = {"bootstrap.servers": kafka.bootstrap, "acks": "all", "enable.idempotence": "true"}
    return {**safe, **{name.replace("_", "."): value for name, value in more.items()}}


def _write_rows(settings: Settings, topic: str, values: list[bytes]) -> None:
    write = foreach_partition(settings, topic)
    write(iter([SparkRow(value=bytearray(value)) for value in values]))


def _write_arrow(settings: Settings, topic: str, values: list[bytes], *, batched: bool) -> None:
    table = pa.table({"value": pa.array(values, pa.binary())})
    write = map_in_arrow(settings, topic, batched=batched)
    (counted,) = write(iter(table.to_batches(max_chunksize=1500)))
    assert counted.to_pydict() == {"sent": [len(values)]}


def _write_single(settings: Settings, topic: str, values: list[bytes]) -> None:
    _write_arrow(settings, topic, values, batched=False)


def _write_batched(settings: Settings, topic: str, values: list[bytes]) -> None:
    _write_arrow(settings, topic, values, batched=True)


Write = Callable[[Settings, str, list[bytes]], None]
every_opponent = pytest.mark.parametrize("write", [_write_rows, _write_single, _write_batched])


@pytest.fixture(autouse=True)
def producers_end_with_their_test() -> Iterator[None]:
    yield
    worker_producer.cache_clear()


@every_opponent
def test_other_sinks_wait_for_a_full_queue(kafka: RunningKafka, write: Write) -> None:
    topic, values = kafka.create_topic(1), [b"%0100d" % number for number in range(4000)]
    write(_settings(kafka, queue_buffering_max_messages=100), topic, values)
    stored = ConfluentClient(kafka.bootstrap).read_all(topic)
    assert sorted(record.value or b"" for record in stored) == values


@every_opponent
def test_other_sinks_check_delivery_reports(kafka: RunningKafka, write: Write) -> None:
    with pytest.raises(NotDeliveredError, match="0 records without a report, 2 failed"):
        write(_settings(kafka), _rejecting(kafka), [b"x" * 200, b"y" * 200])


_BURN = "import time\nwhile time.process_time() < 1: pass"
_FAMILY = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as PySpark's daemons do
run = [sys.executable, "-c", {_BURN!r}]
apart = subprocess.Popen(run, start_new_session=True)
subprocess.run(run)
print("done", flush=True)
sys.stdin.read()
apart.wait()
"""


def test_cpu_time_excludes_processes_in_other_sessions() -> None:
    """A grandchild uses a second of CPU; another one in its own session is not counted."""
    command = [sys.executable, "-c", _FAMILY]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as child,
        CpuLedger(child.pid) as ledger,
    ):
        assert child.stdout is not None
        assert child.stdout.readline() == b"done\n"
        assert 0.8 <= ledger.seconds() < 1.8
        child.communicate(b"")
    assert ledger.seconds() < 1.8


def _row(operation: Operation, side: str, how: str, *runs: tuple[float, float]) -> Row:
    made = Row(Contender(operation, side, how, lambda *_: None))
    made.runs = [Run(1000, seconds, cpu, 0.5) for seconds, cpu in runs]
    made.warm = [Run(1000, 1, 3, 0.5), Run(1000, 1, 2, 0.5)]
    made.small = [Run(10, 0.25, 0.125, 0.0)]
    return made


_OURS = _row(ARROW, "kclient", "write_partitions", (1, 2), (1, 1), (2, 4))
_ONE = _row(ARROW, "confluent-kafka", "produce", (1, 4), (1, 4), (1, 4))
_OTHER = _row(ARROW, "confluent-kafka", "produce_batch", (2, 2), (1, 2), (1, 2))
_ALONE = _row(WRITE, "kclient", "", (1, 1), (1, 1), (1, 1))
_ROWS = [_OURS, _ONE, _OTHER, _ALONE]
_OUTCOME = Outcome(_ROWS, (0.5, 1.5))


def test_ratios_are_per_round_to_the_best_other_contender() -> None:
    assert [opponent(row, _ROWS) for row in _ROWS] == [_OTHER, None, None, None]
    cpu, clock = ratios(_OURS, _OTHER)
    assert (cpu.lowest, cpu.median, cpu.highest) == (0.5, 1.0, 2.0)
    assert (clock.lowest, clock.median, clock.highest) == (0.5, 1.0, 2.0)


def test_table_lists_all_contenders() -> None:
    header, rule, ours, *others = table(_ROWS).splitlines()
    assert header.count("|") == rule.count("|") == ours.count("|")
    assert "first run | 10 rows |" in header
    assert ours == (
        "| mapInArrow | kclient write_partitions | 0 (0..1) | 1.00 (0.50..2.00) | 1 (0..1)"
        " | 1.00 (0.50..2.00) | 0.5 | 1.0 s, 3.0 CPU s | 0.25 s, 0.12 CPU s |"
    )
    assert [line.split(" | ")[3] for line in others] == ["", "", ""]


def test_report_head_describes_the_measurement() -> None:
    text = head("Spark 4.0.0", ["connector-4.0.0"], "4.3.1", Plan(size=1000), _OUTCOME)
    for part in ("Spark 4.0.0", "connector-4.0.0", "Kafka 4.3.1", "1000 bytes", "0.5 to 1.5"):
        assert part in text


def test_picture_shows_all_contenders() -> None:
    measured = json.loads(as_json("Spark 4.0.0", [], "4.3.1", Plan(), _OUTCOME))
    measured["rows"][0]["contender"] = "<kclient> & others"
    drawn = _parsed(picture(measured))
    rates = [bar.rate.median for bar in bars(measured)]
    assert rates == [0.5, 0.25, 0.5, 1.0]
    found = [one for one in drawn.iter(f"{_SVG}rect") if one.get("class") in {"ours", "others"}]
    assert [one.get("class") for one in found] == ["ours", "others", "others", "ours"]
    widths = [float(one.get("width", "nan")) for one in found]
    assert [width / widths[-1] for width in widths] == pytest.approx(rates, abs=0.01)
    texts = [one.text for one in drawn.iter(f"{_SVG}text")]
    assert texts.count("<kclient> & others") == texts.count("mapInArrow") == 1


def test_connector_jars_of_different_versions_fail() -> None:
    whole = [
        "commons-pool2-2.12.0.jar",
        "kafka-clients-3.9.0.jar",
        "spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]
    check_set(whole, "4.0.0")
    for names, version in [
        (whole, "4.0.1"),
        (whole[:3], "4.0.0"),
        ([*whole, "lz4-java-1.8.0.jar"], "4.0.0"),
        ([whole[0], whole[0], *whole[2:]], "4.0.0"),
    ]:
        with pytest.raises(HarnessError, match="jars of the connector: got "):
            check_set(names, version)


class _Bench:
    """A workbench without Spark and Kafka that records calls."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.kafka = SimpleNamespace(
            bootstrap="", cpu_seconds=lambda: 0.0, create_topic=lambda _: "t", delete_topic=id
        )
        self.filled: list[int] = []
        self.counted: list[int] = []
        self.compared: list[int] = []

    def check_values(self, _: str, count: int) -> None:
        self.compared.append(count)

    def fill(self, counts: list[int]) -> None:
        self.filled = counts

    def check_count(self, _: str, count: int, *, transactions: bool) -> None:
        assert not transactions
        self.counted.append(count)
        if count == 13:
            msg = "got 12 records"
            raise CellError(msg)


def _run(plan: Plan, *operations: Operation) -> tuple[list[tuple[str, int]], Outcome, _Bench]:
    """Returns the called contenders with their number of rows, in order."""
    calls: list[tuple[str, int]] = []

    def contender(operation: Operation, side: str) -> Contender:
        name = f"{operation.name} {side}"
        return Contender(operation, side, "", lambda _, count, __: calls.append((name, count)))

    contenders = [contender(one, side) for one in operations for side in ("kclient", "other")]
    bench = _Bench(plan)
    return (
        calls,
        Runner(cast("Workbench", bench), CpuLedger(), lambda _: None).run(contenders),
        bench,
    )


def test_contenders_take_turns_and_warm_up_is_not_counted() -> None:
    calls, outcome, bench = _run(Plan(rows=20_000, warm=1, rounds=2), READ, WRITE)
    assert bench.filled == [4_000, 20_000]
    assert bench.compared == [4_000] * 2
    assert bench.counted == [4_000] * 2 + [10_000] * 2 + [10_000] * 6 + [4_000] * 2
    both, turns = (READ, WRITE), ("kclient", "other")
    through_all = [
        *[(f"{one.name} {side}", 4_000) for one in both for side in turns],
        *[
            (f"{one.name} {side}", full)
            for one, full in ((WRITE, 10_000), (READ, 20_000))
            for side in turns[::-1]
        ],
    ]
    one_by_one = [
        (f"{operation.name} {side}", count)
        for operation, full in ((READ, 20_000), (WRITE, 10_000))
        for number, count in enumerate([full, full, full, 4_000])
        for side in (turns, turns[::-1])[number % 2]
    ]
    assert calls == through_all + one_by_one
    assert [(len(row.warm), len(row.runs), len(row.small)) for row in outcome.rows] == [
        (2, 2, 1)
    ] * 4
    assert [row.first for row in outcome.rows] == [row.warm[0] for row in outcome.rows]


def test_written_values_are_compared(kafka: RunningKafka, tmp_path: Path) -> None:
    bench = Workbench(cast("SparkSession", None), kafka, Plan(size=30, partitions=2), tmp_path)
    bench.fill([5])
    topic = bench.source(5)
    bench.check_values(topic, 5)
    for wrong in (4, 6):
        with pytest.raises(CellError, match=f"those of {wrong} rows"):
            bench.check_values(topic, wrong)
        with pytest.raises(CellError, match=f"got 5 records on the broker, expected {wrong}"):
            bench.check_count(topic, wrong)
    foreach_partition(_settings(kafka), topic)(iter([SparkRow(value=bytearray(b"x"))]))
    with pytest.raises(CellError, match="those of 6 rows"):
        bench.check_values(topic, 6)


def test_wrong_count_fails_the_program() -> None:
    with pytest.raises(CellError, match="stream copy by kclient: got 12 records"):
        _run(Plan(rows=26), COPY)
