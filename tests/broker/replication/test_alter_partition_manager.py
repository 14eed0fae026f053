"""Changes of in-sync replicas to the controller: order, retries, responses."""

import threading
from collections.abc import Callable

import pytest

from kclient.broker.replication.alter_partition_manager import (
    IDLE_MS,
    RETRY_MS,
    AlterPartitionManager,
    for_version_2,
)
from kclient.broker.replication.replication_context import AlterPartitionItem, AlterPartitionResult
from kclient.common.broker_errors import NotControllerError, StaleBrokerEpochError
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.types import TopicPartition
from kclient.protocol.messages.broker_to_controller import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from tests.support.disks.log_bench import ManualClock

T = bytes(15) + b"\x09"
Respond = Callable[[AlterPartitionResponse | KafkaError], None]


class Channel:
    """Records the requests."""

    def __init__(self) -> None:
        self.sent: list[tuple[AlterPartitionRequest, Respond]] = []

    def send(self, request: AlterPartitionRequest, on_response: Respond) -> None:
        self.sent.append((request, on_response))


class Bench:
    def __init__(self) -> None:
        self.clock, self.channel = ManualClock(), Channel()
        self.manager = AlterPartitionManager(
            1, lambda: 77, self.channel.send, threading.Condition(), self.clock.monotonic_ms
        )
        self.results: list[tuple[int, AlterPartitionResult]] = []
        self.retry = False

    def item(self, number: int, epoch: int = 3) -> AlterPartitionItem:
        isr = ((1, 77), (2, -1))
        return AlterPartitionItem(TopicPartition("t", number), T, 5, epoch, isr, self.on_result)

    def on_result(self, item: AlterPartitionItem, result: AlterPartitionResult) -> bool:
        self.results.append((item.topic_partition.partition, result))
        return self.retry

    def named(self) -> list[int]:
        """Return the partitions of the last request."""
        (topic,) = self.channel.sent[-1][0].topics
        return [part.partition_index for part in topic.partitions]

    def respond(self, *numbers: int, error: int = 0, top: int = 0) -> None:
        parts = [
            AlterPartitionResponsePartitionData(
                partition_index=number, error_code=error, leader_epoch=5, isr=[1], partition_epoch=4
            )
            for number in numbers
        ]
        topics = [AlterPartitionResponseTopicData(topic_id=T, partitions=parts)]
        self.channel.sent[-1][1](AlterPartitionResponse(error_code=top, topics=topics))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_request_has_epochs_of_broker_and_members(bench: Bench) -> None:
    bench.manager.submit(bench.item(0))
    request = bench.channel.sent[0][0]
    part = request.topics[0].partitions[0]
    assert (request.broker_id, request.broker_epoch) == (1, 77)
    assert (part.leader_epoch, part.partition_epoch, part.leader_recovery_state) == (5, 3, 0)
    members = [(each.broker_id, each.broker_epoch) for each in part.new_isr_with_epochs]
    assert members == [(1, 77), (2, -1)]
    assert request.encode_bytes(3)
    old = for_version_2(request)
    assert old.topics[0].partitions[0].new_isr == [1, 2]
    assert old.encode_bytes(2)


def test_one_request_is_in_flight_and_the_rest_follows_together(bench: Bench) -> None:
    for number in (0, 1, 2):
        bench.manager.submit(bench.item(number))
    assert len(bench.channel.sent) == 1
    bench.respond(0)
    assert bench.named() == [1, 2]
    bench.respond(1, 2)
    assert [number for number, _ in bench.results] == [0, 1, 2]
    assert bench.results[0][1] == AlterPartitionResult(0, 5, (1,), 4)
    assert bench.manager.step(0.0) == IDLE_MS


@pytest.mark.parametrize(
    "error", [StaleBrokerEpochError(), NotControllerError(), DisconnectedError("broker 2: closed")]
)
def test_failed_request_is_repeated_after_a_pause(bench: Bench, error: KafkaError) -> None:
    bench.manager.submit(bench.item(0))
    bench.channel.sent[0][1](error)
    bench.manager.submit(bench.item(1))
    assert (len(bench.channel.sent), bench.results) == (1, [])
    assert bench.manager.step(0.0) == RETRY_MS
    bench.clock.elapsed_ms = 50
    bench.manager.step(50.0)
    assert bench.named() == [0, 1]


def test_partition_that_wants_so_or_has_no_result_is_sent_again(bench: Bench) -> None:
    bench.manager.submit(bench.item(0))
    bench.manager.submit(bench.item(1))
    bench.retry = True
    bench.respond(0, error=7)
    bench.clock.elapsed_ms = 50
    bench.manager.step(50.0)
    assert bench.named() == [0, 1]
    bench.retry = False
    bench.respond(0)
    bench.clock.elapsed_ms = 100
    bench.manager.step(100.0)
    assert bench.named() == [1]


def test_newer_change_replaces_the_one_that_waits_for_a_retry(bench: Bench) -> None:
    bench.manager.submit(bench.item(0))
    bench.manager.submit(bench.item(0, epoch=4))
    bench.channel.sent[0][1](DisconnectedError("broker 2: closed"))
    bench.clock.elapsed_ms = 50
    bench.manager.step(50.0)
    assert bench.channel.sent[-1][0].topics[0].partitions[0].partition_epoch == 4


def test_controller_of_the_same_process_responds_within_send() -> None:
    bench = Bench()

    class Direct(Channel):
        def send(self, request: AlterPartitionRequest, on_response: Respond) -> None:
            super().send(request, on_response)
            bench.respond(0)

    bench.channel = Direct()
    bench.manager = AlterPartitionManager(
        1, lambda: 77, bench.channel.send, threading.Condition(), bench.clock.monotonic_ms
    )
    bench.manager.submit(bench.item(0))
    assert len(bench.results) == 1
    bench.manager.submit(bench.item(0))
    assert len(bench.results) == 2


def test_close_drops_what_waits(bench: Bench) -> None:
    bench.manager.submit(bench.item(0))
    bench.manager.submit(bench.item(1))
    bench.manager.close()
    assert [(number, result.error_code) for number, result in bench.results] == [(1, 55)]
