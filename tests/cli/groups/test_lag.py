"""``kclient groups lag``: records, seconds and odd committed offsets."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from kclient.cli.main import INTERRUPTED
from kclient.common.types import TopicPartition
from tests.cli.conftest import Run
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ChildProcess


def commit(clients: Clients, group: str, topic: str, offsets: dict[int, int]) -> None:
    given = {TopicPartition(topic, each): offset for each, offset in offsets.items()}
    clients.admin().alter_consumer_group_offsets(group, given).raise_for_errors()


def send(clients: Clients, topic: str, partition: int, ages_s: list[int]) -> None:
    producer, now_ms = clients.producer(), time.time_ns() // 1_000_000
    for age in ages_s:
        producer.send(topic, b"x", partition=partition, timestamp_ms=now_ms - age * 1000)
    producer.flush()


def test_lag_in_records_and_seconds(run: Run, shared_clients: Clients) -> None:
    topic, group = shared_clients.topic(2), shared_clients.group()
    send(shared_clients, topic, 0, [5000, 3000, 100])
    send(shared_clients, topic, 1, [5000])
    commit(shared_clients, group, topic, {0: 1, 1: 1})
    status, shown, error = run("groups", "lag", group, "--json")
    behind, done = [json.loads(line) for line in shown.splitlines()]
    assert (status, error) == (0, "")
    assert 3000 <= behind.pop("lag_seconds") < 3060
    assert behind == {
        "group_id": group,
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "log_start_offset": 0,
        "log_end_offset": 3,
        "lag": 2,
        "status": "behind",
    }
    assert (done["lag"], done["lag_seconds"], done["status"]) == (0, 0.0, "caught up")
    head, *rows = run("groups", "lag", group)[1].splitlines()
    assert head.startswith("GROUP ID ")
    assert len(rows) == 2


def test_committed_offset_outside_of_the_log_is_shown(run: Run, shared_clients: Clients) -> None:
    topic, group = shared_clients.topic(2), shared_clients.group()
    send(shared_clients, topic, 0, [10, 10, 10])
    admin = shared_clients.admin()
    admin.delete_records({TopicPartition(topic, 0): 2}).raise_for_errors()
    commit(shared_clients, group, topic, {0: 1, 1: 4})
    rows = [json.loads(line) for line in run("groups", "lag", group, "--json")[1].splitlines()]
    assert [(row["status"], row["lag"], row["lag_seconds"]) for row in rows] == [
        ("below log start", 2, "unknown"),
        ("above log end", -4, 0.0),
    ]


def test_assigned_partition_without_a_commit_is_shown(run: Run, shared_clients: Clients) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    send(shared_clients, topic, 0, [10])
    consumer = shared_clients.consumer(group)
    consumer.subscribe(topic)
    while not consumer.poll():
        pass
    (line,) = run("groups", "lag", group, "--json")[1].splitlines()
    row = json.loads(line)
    assert (row["status"], row["offset"], row["lag"]) == ("not committed", None, None)
    consumer.close()


def test_group_that_does_not_exist_is_an_error(run: Run, shared_clients: Clients) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    commit(shared_clients, group, topic, {0: 0})
    status, shown, error = run("groups", "lag", "nosuch", group, "--json")
    assert (status, error) == (1, "kclient groups: group 'nosuch' does not exist\n")
    assert json.loads(shown)["status"] == "caught up"


def test_watch_shows_progress_until_ctrl_c(shared_clients: Clients, tmp_path: Path) -> None:
    topic, group = shared_clients.topic(), shared_clients.group()
    send(shared_clients, topic, 0, [10, 10])
    commit(shared_clients, group, topic, {0: 1})
    program = [sys.executable, "-m", "kclient", "groups", "lag", group, "--watch", "0.1", "--json"]
    with ChildProcess([*program, "-b", shared_clients.bootstrap], tmp_path) as process:
        process.wait_for(re.compile(r'("lag": 1,.*\s+.*){2}'))
        commit(shared_clients, group, topic, {0: 2})
        process.wait_for(re.compile(r'("lag": 0,.*\s+.*){2}'))
        process.interrupt()
        process.finish(INTERRUPTED)
        assert process.stderr == "kclient: interrupted\n"


@pytest.mark.parametrize("interval", ["0", "x", "1e9"])
def test_interval_is_checked(run: Run, interval: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run("groups", "lag", "g", "--watch", interval)
    assert ended.value.code == 2
