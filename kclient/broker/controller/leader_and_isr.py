"""Changes of partitions that follow from a change of a broker.

Source: Kafka's ReplicationControlManager.generateLeaderAndIsrUpdates and its callers. The records
of the partitions come before the record of the broker where it leaves, and after it where it
returns, so that no image has a leader that cannot lead.
"""

from collections.abc import Iterable

from kclient.broker.controller.cluster_view import ClusterView
from kclient.broker.controller.partition_change_builder import Election, without
from kclient.broker.controller.partition_index import PartitionKey
from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.protocol.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    UnregisterBrokerRecord,
)

_FENCE, _UNFENCE = 1, -1
_IN_CONTROLLED_SHUTDOWN = 1


def leader_and_isr_updates(
    view: ClusterView,
    keys: Iterable[PartitionKey],
    *,
    leaving: int | None = None,
    joining: int | None = None,
    unclean: bool = False,
) -> list[MetadataRecord]:
    """Return the changes of partitions when a broker leaves or joins.

    Args:
        view: State before the change.
        keys: The partitions.
        leaving: Broker that leaves their ISR.
        joining: Broker that may lead although it is fenced before the change.
        unclean: Whether `leaving` may have lost records, so that it must not be eligible.
    """

    def is_live(replica: int) -> bool:
        return replica != leaving and (replica == joining or view.is_active(replica))

    records: list[MetadataRecord] = []
    for key in keys:
        builder = view.builder(key, is_live)
        if view.unclean_enabled(view.topic(key).name):
            builder.election = Election.UNCLEAN
        if leaving is not None:
            builder.target_isr = without(builder.target_isr, (leaving,))
            if unclean:
                builder.unclean_replicas = (leaving,)
        record = builder.build()
        if record is not None:
            records.append(record)
    return records


def fence(view: ClusterView, broker: BrokerRegistration) -> list[MetadataRecord]:
    """Return the records that fence a broker: it leaves every ISR and leads nothing."""
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE
    )
    return [*leave(view, broker.id), change]


def unfence(view: ClusterView, broker: BrokerRegistration) -> list[MetadataRecord]:
    """Return the records that unfence a broker, and elect leaders where none could lead."""
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=_UNFENCE
    )
    updates = leader_and_isr_updates(view, list(view.index.leaderless), joining=broker.id)
    return [change, *updates]


def start_controlled_shutdown(
    view: ClusterView, broker: BrokerRegistration
) -> list[MetadataRecord]:
    """Return the records with which a broker starts to shut down: it leaves every ISR."""
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN,
    )
    return [*leave(view, broker.id), change]


def unregister(view: ClusterView, broker: BrokerRegistration) -> list[MetadataRecord]:
    """Return the records that remove a broker's registration."""
    removal = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    return [*leave(view, broker.id), removal]


def leave(view: ClusterView, broker: int, *, unclean: bool = False) -> list[MetadataRecord]:
    """Return the changes of the partitions that a broker leaves."""
    return leader_and_isr_updates(view, view.index.members(broker), leaving=broker, unclean=unclean)


def directories_offline(
    view: ClusterView, broker: BrokerRegistration, offline: Iterable[bytes]
) -> list[MetadataRecord]:
    """Return the records with which log directories of a broker go offline.

    Args:
        view: State before the change.
        broker: The broker.
        offline: Directories that it reports as failed; those that are so already are ignored.
    """
    failed = frozenset(offline) & frozenset(broker.directories)
    if not failed:
        return []
    remaining = [each for each in broker.directories if each not in failed]
    if not remaining:
        # A record without directories means that they are unchanged. The broker stops anyway.
        return [] if broker.fenced else fence(view, broker)
    keys = []
    for key in view.index.members(broker.id):
        partition = view.partition(key)
        directory_of = dict(zip(partition.replicas, partition.directories, strict=False))
        if directory_of.get(broker.id) in failed:
            keys.append(key)
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    # A replica that is created again in another directory lacks its records: it is not eligible.
    return [change, *leader_and_isr_updates(view, keys, leaving=broker.id, unclean=True)]
