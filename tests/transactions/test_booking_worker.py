"""examples/booking_worker.py, run as its user runs it."""

import json
import sys
from pathlib import Path

from kclient import Consumer, Producer, TopicPartition
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.processes.child_process import ChildProcess

TIMEOUT_S = 30.0


def test_worker_books_each_payment_once_over_a_kill_and_a_stop(tmp_path: Path) -> None:
    with EmbeddedCluster() as cluster:
        bootstrap = cluster.bootstrap_servers
        command = [sys.executable, "-W", "error", "examples/booking_worker.py", bootstrap, "1"]
        pay(bootstrap, range(50))
        with ChildProcess(command, tmp_path, name="killed") as worker:
            worker.wait_for("booking", TIMEOUT_S)
            worker.kill()
        pay(bootstrap, range(50, 100))
        with ChildProcess(command, tmp_path, name="stopped") as worker:
            wait_until(lambda: len(booked(bootstrap)) >= 100, "all are booked", TIMEOUT_S)
            worker.terminate()
            assert worker.finish().endswith("stopped\n")
        assert booked(bootstrap) == list(range(100))


def pay(bootstrap: str, amounts: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        values = [json.dumps({"amount": amount}).encode() for amount in amounts]
        producer.send_many("payments", values, partition=0).result(TIMEOUT_S)


def booked(bootstrap: str) -> list[int]:
    """Return the amounts that committed readers see."""
    partition = TopicPartition("bookings", 0)
    with Consumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        value_deserializer=json.loads,
    ) as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([partition])[partition]
        found: list[int] = []
        while consumer.position(partition) < end:
            found += [each.value["amount"] for each in consumer.poll(0.2) if each.value]
        return found
