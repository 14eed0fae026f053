"""Consumers in processes that are killed, exit without close, or fork."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient import NewTopic, Producer
from kclient.admin.admin_client import AdminClient
from kclient.testing import EmbeddedCluster
from tests.support.processes.child_process import ChildProcess
from tests.support.processes.consumer_trials import AT_MOST, GROUP, member, some

PROGRAM = "tests.support.processes.consumer_trials"
COUNT = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(config={"group.min.session.timeout.ms": 500}) as running:
        yield running


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic with one partition and records; the group is empty afterwards."""
    name = request.node.name
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1)]).raise_for_errors()
        with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            producer.send_many(name, [b"%d" % number for number in range(COUNT)]).result(10)
        yield name


@pytest.fixture
def start(
    cluster: EmbeddedCluster, topic: str, tmp_path: Path
) -> Iterator[Callable[[str], ChildProcess]]:
    with ExitStack() as stack:

        def run(trial: str) -> ChildProcess:
            command = [sys.executable, "-X", "dev", "-m", PROGRAM, trial]
            command += [cluster.bootstrap_servers, topic]
            return stack.enter_context(ChildProcess(command, tmp_path))

        yield run


Start = Callable[[str], ChildProcess]


@pytest.mark.fault("R22")
def test_kill_before_commit_repeats_records_and_loses_none(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("die")
    outcomes = json.loads(process.wait_for(re.compile(r"^.+\n", re.MULTILINE))[0])
    process.kill()
    assert outcomes["processed"] == list(range(3 * AT_MOST))
    assert outcomes["committed"] == 2 * AT_MOST
    with member(cluster.bootstrap_servers, topic) as heir:
        again: list[int] = []
        while len(again) < COUNT - outcomes["committed"]:
            again += some(heir)
    assert again == list(range(outcomes["committed"], COUNT))


def test_open_consumer_at_exit_warns_and_does_not_block(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("exit")
    process.finish()
    complaint = process.stderr
    assert "ResourceWarning: <Consumer of group 'trials'" in complaint
    assert "was never closed" in complaint
    assert "Traceback" not in complaint


@pytest.mark.fault("W19")
def test_every_call_in_a_forked_child_raises(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    process = start("fork")
    child, parent = (json.loads(line) for line in process.finish().splitlines())
    for call, output in child["child"].items():
        assert "this consumer was created in process" in output, call
    assert parent["code"] == 0
    assert parent["parent"] == list(range(22))
    assert parent["same_generation"], "the child took the parent out of its group"
    assert "Traceback" not in process.stderr


@pytest.mark.fault("W19")
def test_only_the_parent_leaves_the_group(
    cluster: EmbeddedCluster, topic: str, start: Start
) -> None:
    start("fork").finish()
    with AdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        assert admin.describe_consumer_groups([GROUP])[GROUP].members == ()
