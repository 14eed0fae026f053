"""AddPartitionsToTxn, AddOffsetsToTxn and EndTxn requests."""

from collections.abc import Iterator

import pytest

from kclient.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kclient.testing import EmbeddedCluster
from tests.support.clients.transaction_requests import (
    add,
    ask_as_broker,
    end,
    find,
    init,
    new_producer,
    of_broker,
    prepare_coordinator,
)
from tests.support.clients.transactions import (
    commit_in_transaction,
    fetch_offset,
    transactional_batch,
)
from tests.support.clients.wire import Wire

FENCED, OLD_FENCED, MAPPING, UNSTABLE = 90, 47, 49, 88
TOPIC_UNKNOWN, TOPIC_REFUSED, NOT_ATTEMPTED, ABORTABLE = 3, 29, 55, 120


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Wire]:
    """A connection to a broker that has ``__transaction_state`` and the topic ``t``."""
    with EmbeddedCluster() as cluster, Wire(cluster.bootstrap_servers) as wire:
        wire.create_topic("t", 2)
        assert find(wire) == 15
        prepare_coordinator(wire)
        yield wire


@pytest.mark.parametrize("version", [0, 3, 4])
def test_committed_records_are_readable_and_aborted_ones_are_not(
    coordinator: Wire, version: int
) -> None:
    topic = f"records-{version}"
    coordinator.create_topic(topic)
    producer = new_producer(coordinator, topic)
    for sequence, commit in enumerate((True, False, True)):
        assert add(coordinator, topic, producer, {topic: [0]}) == {(topic, 0): 0}
        batch = transactional_batch([b"v"], producer[0], sequence)
        sent = coordinator.produce(topic, batch, transactional_id=topic)
        assert sent.error_code == 0
        assert end(coordinator, topic, producer, commit=commit, version=version)[0] == 0
    found = coordinator.fetch(topic, 2, isolation=1)
    assert [each.first_offset for each in found.aborted_transactions or ()] == [2]
    assert found.last_stable_offset == found.high_watermark == 6


def test_end_in_version_5_returns_the_next_epoch(coordinator: Wire) -> None:
    producer_id, epoch = new_producer(coordinator, "bump")
    assert end(coordinator, "bump", (producer_id, epoch), commit=False, version=5) == (
        0,
        producer_id,
        epoch + 1,
    )
    add(coordinator, "bump", (producer_id, epoch + 1), {"t": [0]})
    for _attempt in range(2):  # the response may be lost
        ended = end(coordinator, "bump", (producer_id, epoch + 1), version=5)
        assert ended == (0, producer_id, epoch + 2)
    assert end(coordinator, "bump", (producer_id, epoch), version=5) == (FENCED, -1, -1)


def test_producer_of_the_same_id_fences_the_former(coordinator: Wire) -> None:
    former = new_producer(coordinator, "fence")
    assert new_producer(coordinator, "fence") == (former[0], former[1] + 1)
    assert add(coordinator, "fence", former, {"t": [0]}) == {("t", 0): FENCED}
    assert add(coordinator, "fence", former, {"t": [0]}, version=1) == {("t", 0): OLD_FENCED}
    assert end(coordinator, "fence", former)[0] == FENCED
    assert end(coordinator, "fence", former, version=1)[0] == OLD_FENCED
    assert init(coordinator, "fence", (former[0], former[1] + 7)).error_code == FENCED
    assert init(coordinator, "fence", (former[0], former[1] + 7), 3).error_code == OLD_FENCED


@pytest.mark.parametrize("producer", [(-1, 0), (5, -1)])
def test_producer_id_needs_its_epoch(coordinator: Wire, producer: tuple[int, int]) -> None:
    assert init(coordinator, "half", producer).error_code == 42


def test_empty_transactional_id_is_refused(coordinator: Wire) -> None:
    assert init(coordinator, "").error_code == 42


def test_no_partition_is_added_if_one_is_unknown(coordinator: Wire) -> None:
    producer = new_producer(coordinator, "unknown")
    for unknown in ({"t": [0, 2]}, {"t": [0, -1]}):
        number = unknown["t"][1]
        found = add(coordinator, "unknown", producer, unknown)
        assert found == {("t", 0): NOT_ATTEMPTED, ("t", number): TOPIC_UNKNOWN}
    found = add(coordinator, "unknown", producer, {"t": [0], "none": [0]})
    assert found == {("t", 0): NOT_ATTEMPTED, ("none", 0): TOPIC_UNKNOWN}
    found = add(coordinator, "unknown", producer, {"t": [0], "__transaction_state": [0]})
    assert found == {("t", 0): NOT_ATTEMPTED, ("__transaction_state", 0): TOPIC_REFUSED}
    assert end(coordinator, "unknown", producer)[0] == 48


def test_broker_adds_and_verifies_partitions(coordinator: Wire) -> None:
    one, two = new_producer(coordinator, "one"), new_producer(coordinator, "two")
    found = ask_as_broker(
        coordinator,
        of_broker("one", one, t=[0]),
        of_broker("two", two, verify_only=True, t=[0]),
        of_broker("none", (1, 1), t=[0, 1]),
        of_broker("odd", one, t=[0, 5]),
    )
    assert found == {
        "one": {("t", 0): 0},
        "two": {("t", 0): ABORTABLE},
        "none": {("t", 0): MAPPING, ("t", 1): MAPPING},
        "odd": {("t", 0): NOT_ATTEMPTED, ("t", 5): TOPIC_UNKNOWN},
    }
    found = ask_as_broker(
        coordinator,
        of_broker("one", one, verify_only=True, t=[0, 1]),
        of_broker("two", (two[0], two[1] + 1), verify_only=True, t=[0]),
        version=4,
    )
    assert found == {"one": {("t", 0): 0, ("t", 1): ABORTABLE}, "two": {("t", 0): FENCED}}
    assert ask_as_broker(coordinator) == {}
    assert end(coordinator, "one", one, version=5) == (0, one[0], one[1] + 1)


def test_offsets_of_a_group_are_a_partition_of_the_transaction(coordinator: Wire) -> None:
    producer = new_producer(coordinator, "offsets")
    request = AddOffsetsToTxnRequest(
        transactional_id="offsets",
        producer_id=producer[0],
        producer_epoch=producer[1],
        group_id="g",
    )
    for version in (0, 4):
        assert coordinator.ask(request, version, AddOffsetsToTxnResponse).error_code == 0
    request.producer_epoch = 9
    assert coordinator.ask(request, 2, AddOffsetsToTxnResponse).error_code == FENCED
    assert coordinator.ask(request, 1, AddOffsetsToTxnResponse).error_code == OLD_FENCED
    assert end(coordinator, "offsets", producer)[0] == 0


def test_leader_adds_the_partitions_of_version_2_transactions(coordinator: Wire) -> None:
    """A producer of transaction.version 2 sends neither AddPartitionsToTxn nor AddOffsetsToTxn."""
    coordinator.create_topic("added")
    producer_id, epoch = new_producer(coordinator, "v2")
    for commit in (True, False, True):
        batch = transactional_batch([b"v"], producer_id, 0, epoch)
        sent = coordinator.produce("added", batch, version=12, transactional_id="v2")
        assert sent.error_code == 0
        code, producer_id, epoch = end(
            coordinator, "v2", (producer_id, epoch), commit=commit, version=5
        )
        assert code == 0
    assert epoch == 3
    found = coordinator.fetch("added", 2, isolation=1)
    assert [each.first_offset for each in found.aborted_transactions or ()] == [2]
    assert found.last_stable_offset == found.high_watermark == 6


def test_delayed_batch_of_an_ended_transaction_is_refused(coordinator: Wire) -> None:
    coordinator.create_topic("delayed")
    producer = new_producer(coordinator, "delayed")
    assert add(coordinator, "delayed", producer, {"delayed": [0]}) == {("delayed", 0): 0}
    assert end(coordinator, "delayed", producer)[0] == 0
    batch = transactional_batch([b"late"], producer[0], 0, producer[1])
    for version, code in ((9, 48), (11, ABORTABLE)):
        sent = coordinator.produce("delayed", batch, version=version, transactional_id="delayed")
        assert sent.error_code == code
    assert coordinator.fetch("delayed", 0).high_watermark == 1  # the marker alone


def test_batch_of_a_fenced_producer_is_refused(coordinator: Wire) -> None:
    coordinator.create_topic("zombie")
    former = new_producer(coordinator, "zombie")
    new_producer(coordinator, "zombie")
    batch = transactional_batch([b"late"], former[0], 0, former[1])
    for version in (11, 12):
        sent = coordinator.produce("zombie", batch, version=version, transactional_id="zombie")
        assert sent.error_code == OLD_FENCED


def test_group_coordinator_adds_the_offsets_of_version_2_transactions(coordinator: Wire) -> None:
    coordinator.metadata("__consumer_offsets", create=True)
    producer_id, epoch = new_producer(coordinator, "id")
    for offset, commit, expected in ((5, True, 5), (6, False, 5), (7, True, 7)):
        committed = commit_in_transaction(
            coordinator, "g", "t", offset, producer_id, epoch=epoch, version=5
        )
        assert committed == [0]
        assert fetch_offset(coordinator, "g", "t", require_stable=True) == (-1, UNSTABLE)
        code, producer_id, epoch = end(
            coordinator, "id", (producer_id, epoch), commit=commit, version=5
        )
        assert code == 0
        assert fetch_offset(coordinator, "g", "t", require_stable=True) == (expected, 0)
