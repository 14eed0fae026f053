"""``kclient records``: what is deleted, and what is only shown."""

import json
import re
from pathlib import Path

import pytest

from kclient.admin import NewTopic, OffsetSpec
from kclient.cli.main import main
from kclient.common.types import TopicPartition
from tests.cli.conftest import Run
from tests.support.clients.clients import Clients


@pytest.fixture
def topic(shared_clients: Clients) -> str:
    """A topic with the times 1000 to 5000 ms in partition 0, and one record in partition 1."""
    topic = shared_clients.topic(2)
    producer = shared_clients.producer()
    for time_ms in (1000, 2000, 3000, 4000, 5000):
        producer.send(topic, b"x", partition=0, timestamp_ms=time_ms)
    producer.send(topic, b"x", partition=1, timestamp_ms=6000)
    producer.flush()
    return topic


def starts(clients: Clients, topic: str) -> list[int]:
    wanted = {TopicPartition(topic, each): OffsetSpec.earliest() for each in (0, 1)}
    found = clients.admin().list_offsets(wanted).raise_for_errors()
    return [found[each].offset for each in wanted]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--before-offset", "2", "--partition", "0"), [2, 0]),
        (("--before-time", "3500"), [3, 0]),
        (("--before-time", "5500"), [5, 0]),
        (("--all",), [5, 1]),
        (("--all", "--partition", "1"), [0, 1]),
    ],
)
def test_records_are_deleted_with_execute_only(
    run: Run, shared_clients: Clients, topic: str, options: tuple[str, ...], expected: list[int]
) -> None:
    delete = ("records", "delete", topic, *options, "--json")
    status, planned, error = run(*delete)
    assert (status, "nothing was deleted: --execute" in error) == (0, True)
    assert starts(shared_clients, topic) == [0, 0]
    assert run(*delete, "--execute") == (0, planned, "")
    assert starts(shared_clients, topic) == expected
    rows = [json.loads(line) for line in planned.splitlines()]
    assert {row["partition"]: row["before_offset"] for row in rows} == {
        number: offset
        for number, offset in enumerate(expected)
        if number in {r["partition"] for r in rows}
    }
    assert all(row["records"] == row["before_offset"] for row in rows)


def test_file_of_kafkas_tool(run: Run, shared_clients: Clients, topic: str, tmp_path: Path) -> None:
    partitions = [
        {"topic": topic, "partition": 0, "offset": 2},
        {"topic": topic, "partition": 1, "offset": -1},
    ]
    file = tmp_path / "delete.json"
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    status, shown, _ = run("records", "delete", "--from-file", str(file), "--execute")
    head, *rows = shown.splitlines()
    assert (status, starts(shared_clients, topic)) == (0, [2, 1])
    columns = ["TOPIC", "PARTITION", "LOG START OFFSET", "BEFORE OFFSET", "RECORDS"]
    assert re.split(r" {2,}", head) == columns
    assert [row.split() for row in rows] == [
        [topic, "0", "0", "2", "2"],
        [topic, "1", "0", "1", "1"],
    ]


def test_each_partition_succeeds_or_fails_by_itself(
    run: Run, shared_clients: Clients, topic: str
) -> None:
    options = ("--before-offset", "4", "--partition", "0", "--partition", "1", "--partition", "7")
    status, shown, error = run("records", "delete", topic, *options, "--execute", "--json")
    assert (status, json.loads(shown)["before_offset"]) == (1, 4)
    missing, too_far = error.splitlines()
    assert f"{topic}-7" in missing
    assert f"{topic}-1: OFFSET_OUT_OF_RANGE" in too_far
    assert starts(shared_clients, topic) == [4, 0]


def test_dry_run_reports_offsets_after_the_log_end(
    run: Run, shared_clients: Clients, topic: str
) -> None:
    status, shown, error = run("records", "delete", topic, "--before-offset", "4", "--json")
    assert (status, json.loads(shown)["partition"]) == (1, 0)
    assert error.splitlines()[0] == (
        f"kclient records: partition {topic}-1: got offset 4, expected at most 1, the log end"
    )
    assert starts(shared_clients, topic) == [0, 0]


def test_compacted_topic_is_refused(run: Run, shared_clients: Clients) -> None:
    config = {"cleanup.policy": "compact"}
    shared_clients.admin().create_topics(NewTopic("table", 1, configs=config))
    status, _, error = run("records", "delete", "table", "--all", "--execute")
    assert (status, "table-0: POLICY_VIOLATION" in error) == (1, True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--all",), "expected TOPIC, or --from-file without TOPIC"),
        (("t", "--from-file", "f"), "expected TOPIC, or --from-file without TOPIC"),
        (("--partition", "0", "--from-file", "f"), "expected TOPIC, or --from-file"),
        (("t",), "one of the arguments --before-offset"),
        (("t", "--all", "--before-offset", "1"), "not allowed with argument"),
    ],
)
def test_wrong_options_are_usage_errors(
    options: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main(["records", "delete", *options])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert text in capsys.readouterr().err
