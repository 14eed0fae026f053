"""Short runs of the benchmark, and its checks of the measured counts."""

import json
import re
import shutil
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration.benchmarks import endless, pairs, publish, recovery, scale, start
from integration.benchmarks.__main__ import main
from integration.benchmarks.cases import BLOCKS, FIGURES, Block, Case, Cell, Goal
from integration.benchmarks.measuring import CellError, check_claim, run_cell
from integration.benchmarks.report import table
from integration.benchmarks.results import block_results, merged, ratio, reached, setup
from integration.benchmarks.runner import Runner, Settings
from integration.benchmarks.sink.partition_log import (
    CORRUPT_MESSAGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PartitionLog,
)
from integration.benchmarks.spread import Spread
from integration.benchmarks.targets import SINK, RunningSink, sink
from integration.benchmarks.workload import (
    CONSUME,
    LATENCY,
    MEMORY,
    PRODUCE,
    Measurement,
    Workload,
    distinct_values,
)
from integration.harness.running_kafka import RunningKafka
from integration.harness.tool_output import Throughput, producer_throughput
from kclient import Producer
from kclient.record import RecordBatchBuilder, read_batches
from tests.support.checks.waiting import HarnessError

SETTINGS = Settings(
    rounds=2, scale=0.02, acks="all", linger_ms=5, batch_bytes=65536, tree=pairs.PROJECT
)
SHORT = Block(
    "short",
    (Case("one", Cell(PRODUCE, "kclient"), Cell(PRODUCE, "kafka-python"), (Goal("rate", 0.01),)),),
)


@pytest.fixture(scope="module")
def running_sink() -> Iterator[RunningSink]:
    with sink() as found:
        yield found


@pytest.fixture
def measured(running_sink: RunningSink) -> dict[str, Any]:
    runner = Runner(running_sink, SETTINGS, lambda _: None)
    return block_results(SHORT, runner.measure(SHORT), SINK)


def test_block_has_rounds_ratios_and_verdicts(measured: dict[str, Any]) -> None:
    assert [len(cell["rounds"]) for cell in measured["cells"]] == [2, 2]
    for cell in measured["cells"]:
        # The CPU time is that of the whole cell: it may exceed the few milliseconds of the records.
        shares = [one["broker_cpu_seconds"] / one["seconds"] for one in cell["rounds"]]
        assert cell["broker_share"] == pytest.approx(statistics.median(shares))
        assert min(shares) > 0
    (case,) = measured["cases"]
    (goal,) = case["goals"]
    assert goal["met"] is True
    assert case["ratios"]["rate"]["median"] > 0.01
    lines = table(measured).splitlines()
    assert lines[2].startswith("| one | ")
    assert lines[2].endswith("| rate ≥ 0.01 × met |")
    assert lines[3].startswith("| kafka-python | ")


def test_results_of_blocks_go_to_one_file_and_to_a_page(
    tmp_path: Path, measured: dict[str, Any]
) -> None:
    file, page = tmp_path / "run.json", tmp_path / "page.md"
    for title in ("first", "second", "first"):
        file.write_text(
            json.dumps(merged(file, setup(SINK, SETTINGS), measured | {"title": title}))
        )
    page.write_text("before <!-- measured: sink -->old<!-- end: sink --> after")
    publish.main([str(file), str(page)])
    text = page.read_text()
    assert text.startswith("before <!-- measured: sink -->")
    assert text.endswith("<!-- end: sink --> after")
    assert "old" not in text
    assert text.count("| one |") == 2
    assert "2 of 2 goals are met" in text
    picture = (tmp_path / "page-sink.svg").read_text()
    assert picture.count(": rate</text>") == 2
    with pytest.raises(HarnessError, match="another setup"):
        merged(file, setup("4.3.1", SETTINGS), measured)


@pytest.mark.campaign
@pytest.mark.parametrize("operation", [PRODUCE, CONSUME])
def test_short_run(kafka: RunningKafka, operation: str) -> None:
    peers = Cell(operation, "confluent-kafka"), Cell(operation, "kafka-python")
    block = Block("short", (Case("one", *peers),))
    runner = Runner(kafka, SETTINGS, lambda _: None)
    runner.check(peers)
    found = block_results(block, runner.measure(block), kafka.version)
    assert [len(cell["rounds"]) for cell in found["cells"]] == [2, 2]


@pytest.mark.parametrize(
    "client", ["kclient transactions", "confluent-kafka transactions", "kafka-clients transactions"]
)
def test_transactions_of_clients_are_measured(kafka: RunningKafka, client: str) -> None:
    cell = Cell(PRODUCE, client, partitions=3, transaction_ms=10)
    runner = Runner(kafka, replace(SETTINGS, rounds=9), lambda _: None)
    runner.check([cell])
    found = runner.measure(Block("short", (Case("one", cell, cell),), most_rounds=1))
    (one,) = found[cell]
    assert 10_000 < one.timed_records <= one.claimed
    assert one.cpu_seconds > 0
    assert one.seconds > 0.01


def test_record_of_aborted_transaction_is_found_missing(kafka: RunningKafka) -> None:
    topic = kafka.create_topic(2)
    load = replace(
        _load(kafka, PRODUCE, topic), client="confluent-kafka transactions", transaction_ms=1
    )
    produced = run_cell(load, pairs.PROJECT)
    with Producer(bootstrap_servers=kafka.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"value").result(30)
        producer.abort_transaction()
    check_claim(load, produced)
    with pytest.raises(CellError, match="stored: got 1000, expected 1001"):
        check_claim(replace(load, records=1001), replace(produced, claimed=1001))


def test_rate_of_java_client_is_that_after_the_warm_up() -> None:
    total = b"1600000 records sent, 370456.124103 records/sec (35.33 MB/sec), 17 ms avg latency\n"
    steady = b"1200000 steady state records sent, 416956.219597 records/sec (39.76 MB/sec)\n"
    assert producer_throughput(total) == Throughput(1_600_000, 370456.124103)
    assert producer_throughput(total + steady) == Throughput(1_200_000, 416956.219597)


def test_sink_has_no_blocks_with_transactions(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list", "--only", "transactions", "latency"])
    assert "transactions, 6 partitions: every 10 ms" in capsys.readouterr().out
    main(["--list", "--sink", "--only", "transactions", "latency"])
    assert "transactions" not in capsys.readouterr().out


def test_starts_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    recovery.main(["--mebibytes", "2", "--rounds", "1"])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row[:22].strip() for row in rows] == [story.name for story in recovery.STORIES]
    for row in rows:
        mebibytes, batches, *seconds = row[22:].replace(",", "").split()
        assert mebibytes == "2"
        assert int(batches) > 100
        assert min(map(float, seconds)) >= 0


def test_first_moments_are_measured(
    kafka: RunningKafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KCLIENT_KAFKA_BOOTSTRAP", kafka.bootstrap)
    start.main(["--rounds", "1"])
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [(row[12:28].strip(), row[:11].strip()) for row in rows] == list(start.PARTS)
    for row in rows:
        figures = [float(cell) for cell in row[28:].replace("..", " ").split()]
        assert len(figures) == 9
        assert min(figures) > 0


def test_scale_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(
        ["--partitions", "1", "60", "--nodes", "1", "3", "--records", "10000", "--rounds", "1"]
    )
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[1:]]
    cases = [["1", "1"], ["60", "1"], ["60", "3"]]
    assert [row[:3] for row in rows] == [
        [client, *case] for client in ("produce", "consume") for case in cases
    ]
    for row in rows:
        assert min(float(cell) for cell in (row[3], *row[4].split(".."), row[5])) > 0


def test_memory_over_many_records_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    endless.main(["--records", "1_000_000"])
    heading, *parts = capsys.readouterr().out.splitlines()
    assert heading.split()[0] == "records"
    assert int(parts[-1].split()[0].replace(",", "")) >= 1_000_000
    assert len(parts) <= 20


def test_growing_memory_is_found() -> None:
    endless.check_growth([90, 100, 109])
    with pytest.raises(HarnessError, match="resident memory"):
        endless.check_growth([100 << 20, 90 << 20, 111 << 20])


def test_failed_part_fails_the_run(kafka: RunningKafka) -> None:
    with pytest.raises(HarnessError, match="first send of kclient failed"):
        start.measure("kclient", start.SEND, kafka.bootstrap, "a topic with an illegal name")


def _load(kafka: RunningKafka, operation: str, topic: str) -> Workload:
    return Workload(
        operation, "confluent-kafka", kafka.bootstrap, topic, 2, 1000, 100, "all", 5, 65536
    )


def test_wrong_record_count_is_found(kafka: RunningKafka) -> None:
    topic = kafka.create_topic(2)
    load = _load(kafka, PRODUCE, topic)
    produced = run_cell(load, pairs.PROJECT)
    with pytest.raises(CellError, match="claimed: got 999, expected 1000"):
        check_claim(load, replace(produced, claimed=999))
    reading = _load(kafka, CONSUME, topic)
    consumed = run_cell(reading, pairs.PROJECT)
    with pytest.raises(CellError, match="sum of offsets"):
        check_claim(reading, replace(consumed, offset_sum=consumed.offset_sum - 1))


def test_failing_cell_fails_the_run(kafka: RunningKafka) -> None:
    load = replace(_load(kafka, PRODUCE, "a topic with an illegal name"), partitions=1)
    with pytest.raises(CellError, match="failed"):
        run_cell(load, pairs.PROJECT)


def test_ratios_are_computed_per_round() -> None:
    def rounds(*speeds: float) -> list[Measurement]:
        return [Measurement(1000, 1000, 1000 / speed, 1, 0) for speed in speeds]

    found = ratio(FIGURES["rate"], rounds(10, 20, 90), rounds(20, 20, 30))
    assert (found.lowest, found.median, found.highest) == pytest.approx((0.5, 1.0, 3.0))


@pytest.mark.parametrize(
    ("figure", "value", "met"), [("rate", 1.9, False), ("rate", 2.0, True), ("cpu", 2.1, False)]
)
def test_limits_are_lower_for_rates_and_upper_for_costs(
    figure: str, value: float, *, met: bool
) -> None:
    assert reached(FIGURES[figure], value, 2.0) is met


def test_values_have_the_configured_size_and_cells_a_contender() -> None:
    for size in (100, 1024):
        assert {len(value) for value in distinct_values(size)} == {size}
    for cell in (cell for block in BLOCKS for cell in block.cells):
        assert cell.way.operation == cell.operation


def _batch(sequence: int, count: int = 2) -> bytes:
    builder = RecordBatchBuilder(bytearray(1000))
    for _ in range(count):
        builder.append(1_700_000_000_000, None, b"value", None)
    builder.seal()
    return bytes(builder.restamp(7, 0, sequence))


def test_sink_counts_whole_batches_in_sequence_and_refuses_others() -> None:
    log = PartitionLog(keeps=False)
    assert log.append(memoryview(_batch(0))) == (0, 0)
    assert log.append(memoryview(_batch(2))) == (0, 2)
    assert log.append(memoryview(_batch(2)))[0] == OUT_OF_ORDER_SEQUENCE_NUMBER
    damaged = bytearray(_batch(4))
    damaged[-1] ^= 1
    assert log.append(memoryview(damaged))[0] == CORRUPT_MESSAGE
    assert log.append(memoryview(_batch(4))[:-1])[0] == CORRUPT_MESSAGE
    assert log.end == 4


def test_sink_sends_what_it_kept_with_new_offsets() -> None:
    log = PartitionLog(keeps=True, laps=3)
    for number in range(2):
        log.append(memoryview(_batch(2 * number)))
    assert log.end == 12
    parts, size = log.read(5, 1 << 20)
    data = b"".join(parts)
    assert size == len(data)
    assert [batch.base_offset for batch in read_batches(data)] == [4, 6, 8, 10]
    assert log.read(12, 1000) == ([], 0)


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


def test_send_in_a_transaction_is_compared_with_send_outside(
    kafka: RunningKafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KCLIENT_KAFKA_BOOTSTRAP", kafka.bootstrap)
    names = ["--only", "kclient in a transaction", "--against", "kclient no future kept"]
    pairs.main([str(pairs.PROJECT), *names, "--sizes", "100", "--slices", "3", "--scale", "0.01"])
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert row.startswith("produce 100 B: kclient in a transaction")
    figures = [float(cell) for cell in row[44:].replace("..", " ").split()]
    assert len(figures) == 9
    assert min(figures) > 0


def test_trees_are_compared_on_the_sink(capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--only", "kclient no future kept", "--sizes", "1024", "--defaults", "--sink"]
    pairs.main([str(pairs.PROJECT), *only, "--slices", "2", "--scale", "0.01"])
    (row,) = capsys.readouterr().out.splitlines()[2:]
    assert row.startswith("produce 1024 B: kclient no future kept")
    assert re.search(r"  sink \d+%", row)


def test_rows_that_the_base_cannot_run_are_skipped_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The base has neither the clients for asyncio nor Arrow columns of the consumer."""
    shutil.copytree(
        pairs.PROJECT / "kclient",
        tmp_path / "kclient",
        ignore=shutil.ignore_patterns("aio", "__pycache__"),
    )
    consumer = tmp_path / "kclient" / "consumer" / "consumer.py"
    consumer.write_text(consumer.read_text().replace("def poll_columns", "def poll_in_columns"))
    only = ["--only", "kclient", "kclient asyncio", "kclient columns", "--sizes", "100", "--sink"]
    pairs.main([str(tmp_path), *only, "--slices", "2", "--scale", "0.01"])
    rows = capsys.readouterr().out.splitlines()[2:]
    skipped = [row for row in rows if "skipped" in row]
    assert len(rows) == 5
    no_module = "skipped, the base cannot run it: No module named 'kclient.aio'"
    assert [row.split("  ")[0] for row in skipped if row.endswith(no_module)] == [
        "produce 100 B: kclient asyncio",
        "consume 100 B: kclient asyncio",
    ]
    (columns,) = (row for row in skipped if not row.endswith(no_module))
    assert columns.startswith("consume 100 B: kclient columns")
    assert "'Consumer' object has no attribute 'poll_columns'" in columns


@pytest.mark.parametrize(
    "cell",
    [
        Cell(PRODUCE, "kclient no future kept", defaults=True),
        Cell(PRODUCE, "kclient pure Python", codec="lz4"),
        Cell(PRODUCE, "confluent-kafka", codec="zstd"),
        Cell(PRODUCE, "aiokafka"),
        Cell(CONSUME, "kclient columns"),
        Cell(CONSUME, "confluent-kafka", defaults=True),
        Cell(CONSUME, "aiokafka"),
        Cell(LATENCY, "kclient back to back"),
        Cell(LATENCY, "confluent-kafka paced"),
    ],
    ids=lambda cell: f"{cell.operation} by {cell.contender}",
)
def test_clients_deliver_to_the_sink(running_sink: RunningSink, cell: Cell) -> None:
    Runner(running_sink, SETTINGS, lambda _: None).check([cell])


@pytest.mark.parametrize("client", ["kclient", "confluent-kafka"])
def test_buffered_records_are_weighed(running_sink: RunningSink, client: str) -> None:
    cell = Cell(MEMORY, client)
    block = Block("memory", (Case("one", cell, cell, (Goal("memory", 1000.0),)),), needs_sink=True)
    settings = replace(SETTINGS, rounds=1, scale=0.1)
    (one,) = Runner(running_sink, settings, lambda _: None).measure(block)[cell]
    assert 10 < one.buffered_bytes < 1000


@pytest.mark.campaign
def test_every_cell_is_delivered_to_the_sink(running_sink: RunningSink) -> None:
    cells = [cell for block in BLOCKS for cell in block.cells if not cell.transaction_ms]
    Runner(running_sink, SETTINGS, lambda _: None).check(cells)


def test_base_is_a_checkout(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="expected a checkout of kclient"):
        pairs.main([str(tmp_path)])
