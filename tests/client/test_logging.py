"""Log lines of a client: prefix, connections at INFO, requests at DEBUG."""

import logging
import re

import pytest

from kclient import Producer
from kclient.common.errors import KafkaError
from kclient.testing import EmbeddedCluster
from tests.client.conftest import NODE, ClientWorld
from tests.support.virtual.virtual_home import IP


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_connection_is_logged_once_at_info(
    world: ClientWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    for _ in range(3):
        world.client.disconnect("1")
        world.poll_until(lambda: world.client.ready(NODE, world.now_ms))
    assert caplog.messages == [
        "connected to bootstrap server at 10.0.0.1:9092",
        "connected to broker 1 at 10.0.0.1:9092",
    ]


def test_outage_and_recovery_are_logged_once(
    world: ClientWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    broker = world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    caplog.clear()
    world.net.stop((NODE.host, NODE.port))
    deadline_ms = world.now_ms + 5_000
    while world.now_ms < deadline_ms:
        world.client.ready(NODE, world.now_ms)
        world.poll(50)
    world.net.peers[NODE.host, NODE.port] = lambda: broker
    world.connect(NODE)
    lines = [line for line in caplog.messages if "broker 1" in line]
    assert len(lines) == 2
    assert lines[0] == "broker 1 at 10.0.0.1:9092: could not connect: Connection refused"
    assert re.fullmatch(
        r"connected to broker 1 at 10\.0\.0\.1:9092 after \d+ failed attempts", lines[1]
    )


def test_idle_close_by_broker_is_not_logged_as_failure(
    world: ClientWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    caplog.clear()
    assert world.net.cut(IP, NODE.host, reset=False)
    world.poll()
    assert world.client.connection_failed(NODE)
    assert world.client.bootstrap_error() is None
    world.connect(NODE)
    assert caplog.messages == []


def test_requests_and_responses_are_logged_at_debug(
    world: ClientWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.broker()
    world.poll_until(world.bootstrapped)
    world.connect(NODE)
    caplog.set_level(logging.DEBUG, "kclient")
    world.ask()
    world.poll()
    sent, received = lines(caplog, logging.DEBUG)
    number = world.outcomes[-1].correlation_id
    assert re.fullmatch(
        rf"sending METADATA request v13, correlation id {number}, \d+ bytes,"
        r" to broker 1 at 10\.0\.0\.1:9092",
        sent,
    )
    assert re.fullmatch(
        rf"received METADATA response v13, correlation id {number}, \d+ bytes,"
        r" from broker 1 at 10\.0\.0\.1:9092 after 2\.0 ms",
        received,
    )


def test_producer_log_lines_have_prefix_and_no_payload(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "kclient")

    def fail(*_: object) -> None:
        raise ValueError("not the record's fault")

    with (
        EmbeddedCluster() as cluster,
        Producer(bootstrap_servers=cluster.bootstrap_servers, client_id="orders") as producer,
    ):
        producer.send("t", b"a secret payload", on_delivery=fail).result(10)
        cluster.stop()
        producer.send("t", b"a secret payload")
        with pytest.raises(KafkaError):
            producer.flush(1)
        producer.close(0)
    packages = ("kclient.client", "kclient.network", "kclient.producer")
    records = [
        record
        for record in caplog.records
        if record.name.startswith(packages) and record.threadName != "MainThread"
    ]
    text = "\n".join(record.getMessage() for record in records)
    for expected in ("sending PRODUCE request v", "connected to broker 1 at", "could not connect"):
        assert expected in text
    assert "a delivery callback raised" in text
    assert "secret" not in text
    servers = "kclient.network.selector"  # the broker's own connections
    unnamed = [each.getMessage() for each in records if each.name != servers]
    assert [line for line in unnamed if not line.startswith("[Producer clientId=orders] ")] == []
