"""Forked processes: the child's first call raises and sends nothing, the parent continues."""

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kclient import Producer
from kclient.common.errors import ForkedClientError
from kclient.protocol.api_keys import ApiKey
from kclient.testing import EmbeddedCluster

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as running:
        running.faults.requests.clear()  # requests are recorded from now on
        yield running


@pytest.mark.fault("W19")
def test_child_forked_while_every_lock_is_held(cluster: EmbeddedCluster) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "tests.support.processes.fork_trials",
         cluster.bootstrap_servers, "forked"],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    child, parent = (json.loads(line) for line in ended.stdout.splitlines())
    assert parent["child_ended"] == 0, ended.stderr
    assert parent["parent"] == [1, 1, 3]
    assert len(child["child"]) == 12
    for call, error in child["child"].items():
        assert f"process {parent['pid']}" in error, call
    # All requests came over the parent's connection, with consecutive correlation ids.
    seen = [each for each in cluster.faults.requests if each.client_id == "forking"]
    produced = {each.connection_id for each in seen if each.api is ApiKey.PRODUCE}
    assert len(produced) == 1
    numbers = [each.correlation_id for each in seen]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


@pytest.mark.fault("W19")
def test_multiprocessing_worker_needs_its_own_producer(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("worked", b"parent").result(10)
        here, there = multiprocessing.Pipe()

        def work(replies: Connection) -> None:
            try:
                producer.send("worked", b"child")
            except ForkedClientError as error:
                replies.send(str(error))
            with Producer(bootstrap_servers=servers) as own:
                replies.send(own.send("worked", b"own").result(10).offset)

        worker = multiprocessing.get_context("fork").Process(target=work, args=(there,))
        worker.start()
        worker.join(30)
        assert worker.exitcode == 0
        seen, offset = here.recv(), here.recv()
        assert f"created in process {os.getpid()}, this is {worker.pid}" in seen
        assert offset == 1
        assert producer.send("worked", b"parent").result(10).offset == 2


@pytest.mark.fault("W19")
def test_fork_in_a_callback_starts_no_second_sender(cluster: EmbeddedCluster) -> None:
    ended: list[int] = []

    def fork(metadata: object, error: object) -> None:
        child = os.fork()
        if child == 0:
            waits = sum(1 for _ in producer._core._sender.steps())  # as the child's thread does
            os._exit(waits)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer.send("called", b"x", on_delivery=fork).result(10)
        producer.flush(10)
        assert ended == [0]
        assert producer.send("called", b"y").result(10).offset == 1
