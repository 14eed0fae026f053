"""Replay of records of brokers and controllers."""

from collections.abc import Sequence

from kclient.broker.metadata.metadata_changes import MetadataChanges
from kclient.broker.metadata.metadata_image import (
    BrokerRegistration,
    ControllerRegistration,
    MetadataImage,
)
from kclient.broker.metadata.shared_mapping import SharedMapping
from kclient.common.errors import KafkaError
from kclient.network.endpoint import Endpoint, SecurityProtocol
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)

_FENCED_CHANGE = {0: None, 1: True, -1: False}
_SHUTDOWN_CHANGE = {0: None, 1: True}
"""A controlled shutdown never ends but by another registration."""


class ClusterDelta:
    """Brokers and controllers with records replayed onto them (Kafka: ClusterDelta).

    Attributes:
        brokers: Brokers by id.
        controllers: Controllers by id.
    """

    def __init__(self, image: MetadataImage, changes: MetadataChanges) -> None:
        self._changes = changes
        self.brokers: SharedMapping[int, BrokerRegistration] = SharedMapping(image.brokers)
        self.controllers: SharedMapping[int, ControllerRegistration] = SharedMapping(
            image.controllers
        )

    def register_broker(self, record: RegisterBrokerRecord) -> None:
        """Add a broker, or replace it."""
        registration = BrokerRegistration(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=_endpoints(record.end_points),
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=tuple(record.cordoned_log_dirs or ()),
            features={
                each.name: (each.min_supported_version, each.max_supported_version)
                for each in record.features
            },
            is_migrating_zk_broker=record.is_migrating_zk_broker,
        )
        self._set_broker(registration)

    def change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        """Change a broker; an empty list of directories leaves them unchanged."""
        old = self._broker(record.broker_id, record.broker_epoch)
        fenced = _change(_FENCED_CHANGE, record.fenced, record)
        shutdown = _change(_SHUTDOWN_CHANGE, record.in_controlled_shutdown, record)
        cordoned = record.cordoned_log_dirs
        self._set_broker(
            old._replace(
                fenced=old.fenced if fenced is None else fenced,
                in_controlled_shutdown=old.in_controlled_shutdown if shutdown is None else shutdown,
                directories=tuple(record.log_dirs) or old.directories,
                cordoned_directories=(
                    old.cordoned_directories if cordoned is None else tuple(cordoned)
                ),
            )
        )

    def fence_broker(self, record: FenceBrokerRecord) -> None:
        """Fence a broker."""
        self._set_broker(self._broker(record.id, record.epoch)._replace(fenced=True))

    def unfence_broker(self, record: UnfenceBrokerRecord) -> None:
        """Unfence a broker."""
        self._set_broker(self._broker(record.id, record.epoch)._replace(fenced=False))

    def unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        """Remove a broker."""
        self._broker(record.broker_id, record.broker_epoch)
        self.brokers.remove(record.broker_id)
        self._changes.changed_brokers[record.broker_id] = None

    def register_controller(self, record: RegisterControllerRecord) -> None:
        """Add a controller, or replace it."""
        self.controllers.set(
            record.controller_id,
            ControllerRegistration(
                id=record.controller_id,
                incarnation_id=record.incarnation_id,
                endpoints=_endpoints(record.end_points),
                features={
                    each.name: (each.min_supported_version, each.max_supported_version)
                    for each in record.features
                },
                zk_migration_ready=record.zk_migration_ready,
            ),
        )
        self._changes.changed_controllers[record.controller_id] = None

    def unregister_controller(self, record: UnregisterControllerRecord) -> None:
        """Remove a controller, if it is registered."""
        if self.controllers.remove(record.controller_id) is not None:
            self._changes.changed_controllers[record.controller_id] = None

    def _set_broker(self, registration: BrokerRegistration) -> None:
        self.brokers.set(registration.id, registration)
        self._changes.changed_brokers[registration.id] = None

    def _broker(self, broker_id: int, epoch: int) -> BrokerRegistration:
        found = self.brokers.get(broker_id)
        if found is None:
            raise KafkaError(f"metadata log: broker {broker_id} is not registered")
        if found.epoch != epoch:
            raise KafkaError(
                f"metadata log: broker {broker_id} has epoch {found.epoch}, but a record changes "
                f"it in epoch {epoch}"
            )
        return found


def _change(
    values: dict[int, bool | None] | dict[int, bool], code: int, record: object
) -> bool | None:
    if code not in values:
        raise KafkaError(f"metadata log: unknown change {code} in {record!r:.200}")
    return values[code]


def _endpoints(
    registered: Sequence[BrokerEndpoint] | Sequence[ControllerEndpoint],
) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(each) for each in registered)


def _endpoint(registered: BrokerEndpoint | ControllerEndpoint) -> Endpoint:
    try:
        protocol = SecurityProtocol(registered.security_protocol)
    except ValueError:
        raise KafkaError(
            f"metadata log: listener {registered.name!r:.80} has the unknown security protocol "
            f"{registered.security_protocol}"
        ) from None
    return Endpoint(registered.name, registered.host, registered.port, protocol)
