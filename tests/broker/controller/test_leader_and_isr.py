"""Changes of partitions that follow from changes of brokers."""

from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.leader_and_isr import (
    directories_offline,
    fence,
    leader_and_isr_updates,
    start_controlled_shutdown,
    unfence,
    unregister,
)
from kclient.broker.controller.partition_index import PartitionIndex
from kclient.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    UnregisterBrokerRecord,
)
from tests.support.virtual.memory_quorum import (
    controller_with,
    create_topic,
    directory_of,
    heartbeat,
    outcome_of,
)


def view_of(*fenced: int) -> ClusterView:
    controller, epochs = controller_with(1, 2, 3)
    create_topic(controller, "t", {0: [1, 2], 1: [2, 3]})
    create_topic(controller, "alone", {0: [1]})
    for broker in fenced:
        outcome_of(controller, heartbeat(broker, epochs[broker], want_fence=True))
    return ClusterView(controller.image, PartitionIndex(controller.image), {})


def test_partitions_change_before_a_broker_is_fenced() -> None:
    view = view_of()
    for plan in (fence, start_controlled_shutdown):
        first, second, last = plan(view, view.image.brokers[1])
        assert isinstance(first, PartitionChangeRecord)
        assert (first.partition_id, first.leader, first.isr) == (0, 2, [2])
        assert isinstance(second, PartitionChangeRecord)
        assert (second.partition_id, second.leader, second.isr) == (0, -1, None)
        assert isinstance(last, BrokerRegistrationChangeRecord)
    assert isinstance(unregister(view, view.image.brokers[1])[-1], UnregisterBrokerRecord)


def test_leaders_are_elected_after_a_broker_is_unfenced() -> None:
    view = view_of(1)
    first, second = unfence(view, view.image.brokers[1])
    assert isinstance(first, BrokerRegistrationChangeRecord)
    assert isinstance(second, PartitionChangeRecord)
    assert (second.partition_id, second.leader) == (0, 1)


def test_only_partitions_of_the_broker_are_read() -> None:
    view = view_of()
    keys = view.index.members(3)
    assert [number for _, number in keys] == [1]
    (record,) = leader_and_isr_updates(view, keys, leaving=3)
    assert isinstance(record, PartitionChangeRecord)
    assert (record.isr, record.leader) == ([2], -2)


def test_last_directory_offline_fences_the_broker() -> None:
    view = view_of()
    broker = view.image.brokers[3]
    records = directories_offline(view, broker, [directory_of(3)])
    assert records == fence(view, broker)
    assert directories_offline(view, broker, [b"?" * 16]) == []
