"""Consumers whose process is killed, ends without close, or forks."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from kclient import Consumer, NewTopic, Producer
from kclient.admin.admin_client import AdminClient
from kclient.testing import EmbeddedCluster
from tests.support.consumer_trials import AT_MOST, FORK_SESSION_MS, GROUP, member, some

COUNT = 60
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"group.min.session.timeout.ms": 500}) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of one partition, full of records; the group is empty again afterwards."""
    name = request.node.name
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1)])
        with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            producer.send_many(name, [b"%d" % number for number in range(COUNT)]).result(10)
        yield name


@pytest.fixture
def start(cluster: EmbeddedCluster, topic: str) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def run(trial: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-X", "dev", "-m", "tests.support.consumer_trials", trial]
        process = subprocess.Popen(
            [*command, cluster.bootstrap_servers, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


Start = Callable[[str], "subprocess.Popen[str]"]


@pytest.mark.fault("R22")
def test_a_kill_between_processing_and_commit_repeats_what_was_not_committed_and_skips_nothing(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("die")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    process.kill()
    assert told["processed"] == list(range(3 * AT_MOST))
    assert told["committed"] == 2 * AT_MOST
    with member(cluster.bootstrap_servers, topic) as heir:
        again: list[int] = []
        while len(again) < COUNT - told["committed"]:
            again += some(heir)
    assert again == list(range(told["committed"], COUNT))


def test_a_consumer_left_open_at_exit_is_told_and_does_not_hold_it_up(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("exit")
    assert process.stdout is not None
    assert process.stdout.readline()
    before = time.monotonic()
    _, complaint = process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - before < 3.0
    assert process.returncode == 0, complaint
    assert "ResourceWarning: <Consumer of group 'trials'" in complaint
    assert "was never closed" in complaint
    assert "Traceback" not in complaint


@pytest.mark.fault("W19")
def test_the_child_of_a_fork_is_told_at_every_call_and_costs_the_parent_nothing(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("fork")
    out, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint
    child, parent = (json.loads(line) for line in out.splitlines())
    for call, said in child["child"].items():
        assert "this consumer was created in process" in said, call
    assert parent["code"] == 0
    assert parent["parent"] == list(range(22))
    assert parent["same_generation"], "the child took the parent out of its group"
    assert "Traceback" not in complaint


@pytest.mark.fault("W19")
def test_the_group_is_left_by_the_parent_alone(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    start("fork").communicate(timeout=PATIENCE_S)
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id=GROUP) as heir:
        heir.subscribe(topic)
        before = time.monotonic()
        while not heir.assignment():
            heir.poll(0.05)
        waited_ms = (time.monotonic() - before) * 1000
        assert waited_ms < FORK_SESSION_MS / 2, "a member was there until its session ended"
