"""A log truncated by a crash continues with a new leader epoch, which readers detect."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from kclient import Consumer, TopicPartition
from kclient.protocol.messages.fetch import FetchResponse
from kclient.protocol.messages.log_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.testing import EmbeddedCluster
from tests.support.checks.waiting import wait_until
from tests.support.clients.wire import Wire, batch, fetch_request, records_of

FENCED = 74


def end_of_epoch(wire: Wire, epoch: int) -> tuple[int, int]:
    part = OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="t", partitions=[part])
    request = OffsetForLeaderEpochRequest(topics=[topic])
    response = wire.ask(request, 4, OffsetForLeaderEpochResponse)
    found = response.topics[0].partitions[0]
    return found.leader_epoch, found.end_offset


def lose_the_end(data_dir: Path) -> None:
    """Remove unflushed records, as a power failure may."""
    log = data_dir / "t-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-1])


@pytest.mark.fault("B1")
def test_truncation_is_reported_to_reader_beyond_log_end(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            for value in (b"a", b"b", b"lost"):
                wire.produce("t", batch([value]))
        cluster.kill()
        lose_the_end(tmp_path)
        cluster.start()
        with Wire(cluster.bootstrap_servers) as wire:
            for value in (b"new", b"newer"):
                wire.produce("t", batch([value]))
            assert end_of_epoch(wire, 0) == (0, 2)
            assert end_of_epoch(wire, 2) == (2, 4)  # without a leader, then with this one
            request = fetch_request("t", 3)
            request.topics[0].partitions[0].last_fetched_epoch = 0
            found = wire.ask(request, 12, FetchResponse).responses[0].partitions[0]
            assert (found.diverging_epoch.epoch, found.diverging_epoch.end_offset) == (0, 2)
            assert records_of(found.records) == []
            request.topics[0].partitions[0].current_leader_epoch = 0
            refused = wire.ask(request, 12, FetchResponse).responses[0].partitions[0]
            assert refused.error_code == FENCED


def test_clean_restart_keeps_records_and_raises_leader_epoch(tmp_path: Path) -> None:
    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
            wire.produce("t", batch([b"a"]))
        cluster.restart()
        with Wire(cluster.bootstrap_servers) as wire:
            wire.produce("t", batch([b"b"]))
            assert end_of_epoch(wire, 0) == (0, 1)
            assert end_of_epoch(wire, 2) == (2, 2)


Read = Callable[[], list[bytes | None]]


@contextmanager
def own_reader(bootstrap: str) -> Iterator[Read]:
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        yield lambda: [record.value for record in consumer.poll(0.5)]


@contextmanager
def confluent_reader(bootstrap: str) -> Iterator[Read]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0}
    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        yield lambda: [one.value() for one in consumer.consume(100, 0.5) if one.error() is None]


@pytest.mark.parametrize("reader", [own_reader, confluent_reader])
def test_readers_continue_in_new_epoch(
    tmp_path: Path, reader: Callable[[str], AbstractContextManager[Read]]
) -> None:
    written: list[bytes | None] = []
    found: list[bytes | None] = []

    def read_all() -> bool:
        found.extend(read())
        return len(found) >= len(written)

    with EmbeddedCluster(data_dir=tmp_path) as cluster:
        with Wire(cluster.bootstrap_servers) as wire:
            wire.create_topic("t")
        with reader(cluster.bootstrap_servers) as read:
            for _ in range(3):
                with Wire(cluster.bootstrap_servers) as wire:
                    for _ in range(10):
                        written.append(b"%d" % len(written))
                        wire.produce("t", batch([written[-1] or b""]))
                wait_until(read_all, "everything was read")
                cluster.kill()
                cluster.start()
    assert found == written
