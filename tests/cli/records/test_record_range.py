"""End of a range of records."""

import pytest

from kclient.cli.records.record_range import StopOffsets
from kclient.common.errors import KafkaTimeoutError
from kclient.record import ConsumerRecord
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients, place, read


def test_log_that_became_shorter_is_at_its_end(shared_clients: Clients) -> None:
    """As after an unclean election of a leader, or with another topic of the same name."""
    topic = shared_clients.topic()
    shared_clients.fill(topic, 2)
    consumer = shared_clients.consumer()
    consumer.assign([place(topic)])
    stops = StopOffsets(consumer, {place(topic): 10})
    assert not stops.are_reached(is_idle=True)
    read(consumer, 2)
    assert not stops.are_reached(is_idle=False)
    assert stops.are_reached(is_idle=True)


def test_partition_that_was_added_later_has_nothing_before_the_stop(
    shared_clients: Clients,
) -> None:
    topic = shared_clients.topic(partitions=2)
    shared_clients.fill(topic, 2, partition=0)
    shared_clients.fill(topic, 2, partition=1)
    consumer = shared_clients.consumer()
    consumer.assign([place(topic, 0), place(topic, 1)])
    stops = StopOffsets(consumer, {place(topic, 0): 1})
    selected: list[ConsumerRecord] = []
    while not stops.are_reached(is_idle=False):
        selected += stops.select(consumer.poll(0.1))
    assert [(record.partition, record.offset) for record in selected] == [(0, 0)]
    assert consumer.position(place(topic, 0)) == 1


def test_brokers_that_do_not_respond_are_an_error(
    cluster: EmbeddedCluster, clients: Clients
) -> None:
    clients.fill("orders", 2)
    consumer = clients.consumer(default_api_timeout_ms=300)
    consumer.assign([place("orders")])
    read(consumer, 2)
    cluster.kill()
    with pytest.raises(KafkaTimeoutError):
        StopOffsets(consumer, {place("orders"): 10}).are_reached(is_idle=True)
