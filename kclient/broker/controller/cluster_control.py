"""Registration, heartbeats and removal of nodes (Kafka: ClusterControlManager)."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kclient.broker.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kclient.broker.controller.cluster_view import ClusterView, ControllerResult
from kclient.broker.controller.leader_and_isr import (
    directories_offline,
    fence,
    leave,
    start_controlled_shutdown,
    unfence,
    unregister,
)
from kclient.broker.metadata.metadata_image import BrokerRegistration
from kclient.broker.metadata.metadata_version import METADATA_VERSION
from kclient.common.broker_errors import (
    BrokerIdNotRegisteredError,
    DuplicateBrokerRegistrationError,
    InconsistentClusterIdError,
    InvalidRegistrationError,
    UnsupportedVersionError,
)
from kclient.common.uuids import uuid_to_text
from kclient.protocol.messages.broker_to_controller import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

PRODUCER_ID_BLOCK = 1000
_RESERVED_IDS = frozenset(bytes(15) + bytes((last,)) for last in range(100))


class BrokerControlState(Enum):
    """State of a broker at the controller (Kafka: BrokerControlState)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


class HeartbeatFacts(NamedTuple):
    """Facts that decide on the next state.

    Attributes:
        want_fence: Whether the broker asks to be fenced.
        want_shut_down: Whether the broker asks to shut down.
        is_caught_up: Whether the broker has read the record of its registration.
        leads: Whether the broker leads any partition.
        may_stop: Whether all active brokers know of its shutdown.
    """

    want_fence: bool
    want_shut_down: bool
    is_caught_up: bool
    leads: bool
    may_stop: bool


def next_state(current: BrokerControlState, facts: HeartbeatFacts) -> BrokerControlState:
    """Return the state after a heartbeat."""
    if current is BrokerControlState.FENCED:
        if facts.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        unfences = not facts.want_fence and facts.is_caught_up
        return BrokerControlState.UNFENCED if unfences else current
    if current is BrokerControlState.UNFENCED:
        key = (facts.want_fence, facts.want_shut_down, facts.leads)
        return _AFTER_UNFENCED[key]
    stops = not facts.leads and facts.may_stop
    return BrokerControlState.SHUTDOWN_NOW if stops else BrokerControlState.CONTROLLED_SHUTDOWN


_AFTER_UNFENCED = {
    (False, False, False): BrokerControlState.UNFENCED,
    (False, False, True): BrokerControlState.UNFENCED,
    (False, True, False): BrokerControlState.SHUTDOWN_NOW,
    (False, True, True): BrokerControlState.CONTROLLED_SHUTDOWN,
    (True, False, False): BrokerControlState.FENCED,
    (True, False, True): BrokerControlState.FENCED,
    (True, True, False): BrokerControlState.SHUTDOWN_NOW,
    (True, True, True): BrokerControlState.SHUTDOWN_NOW,
}
"""Next state by want_fence, want_shut_down and leads."""


def state_of(broker: BrokerRegistration) -> BrokerControlState:
    """Return the state of a registered broker."""
    if broker.fenced:
        return BrokerControlState.FENCED
    if broker.in_controlled_shutdown:
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.UNFENCED


class ClusterControl:
    """Rules for brokers and controllers of a cluster."""

    def __init__(self, cluster_id: str, heartbeats: BrokerHeartbeatManager) -> None:
        self._cluster_id = cluster_id
        self._heartbeats = heartbeats

    def register_broker(
        self, view: ClusterView, request: BrokerRegistrationRequest, now_ms: float
    ) -> ControllerResult[BrokerRegistrationResponse]:
        """Plan a registration; the broker epoch is the offset that its record will have.

        Raises:
            InconsistentClusterIdError: The broker belongs to another cluster.
            DuplicateBrokerRegistrationError: Another process with this id is alive.
            BrokerIdNotRegisteredError: The broker migrates from ZooKeeper.
            InvalidRegistrationError: The log directories or feature ranges are invalid.
            UnsupportedVersionError: The broker does not support a finalized feature level.
        """
        known = view.image.broker(request.broker_id)
        is_same = known is not None and known.incarnation_id == request.incarnation_id
        self._check_identity(request, None if is_same else known, now_ms)
        _check_directories(view, request)
        _check_features(view, request)
        records: list[MetadataRecord] = []
        if known is not None and not is_same:
            records += _departures(view, known, request.previous_broker_epoch)
        if known is not None and is_same:
            epoch = known.epoch
        else:
            epoch = view.image.offset + 1 + len(records)
        records.append(_registration(view, request, epoch, known if is_same else None))
        return ControllerResult(records, BrokerRegistrationResponse(broker_epoch=epoch))

    def _check_identity(
        self, request: BrokerRegistrationRequest, other: BrokerRegistration | None, now_ms: float
    ) -> None:
        if request.cluster_id != self._cluster_id:
            raise InconsistentClusterIdError(
                f"Expected cluster ID {self._cluster_id}, but got cluster ID "
                f"{request.cluster_id:.80}"
            )
        if (
            other is not None
            and state_of(other) is BrokerControlState.UNFENCED
            and self._heartbeats.has_valid_session(other.id, other.epoch, now_ms)
        ):
            raise DuplicateBrokerRegistrationError(
                f"Another broker is registered with broker id {other.id}. If the broker was "
                "recently restarted this should self-resolve once the heartbeat manager expires "
                "the broker's session."
            )
        if request.is_migrating_zk_broker:
            raise BrokerIdNotRegisteredError("Controller does not support registering ZK brokers.")

    def process_heartbeat(
        self, view: ClusterView, request: BrokerHeartbeatRequest, now_ms: float
    ) -> ControllerResult[BrokerHeartbeatResponse]:
        """Plan the next state of a broker that is alive.

        Raises:
            StaleBrokerEpochError: The broker is not registered, or has another epoch.
        """
        broker = view.check_broker_epoch(request.broker_id, request.broker_epoch)
        is_caught_up = request.current_metadata_offset >= broker.epoch
        current = state_of(broker)
        following = next_state(
            current,
            HeartbeatFacts(
                request.want_fence,
                request.want_shut_down,
                is_caught_up,
                view.index.leads(broker.id),
                self._heartbeats.may_stop(view.image, broker.id),
            ),
        )
        records = self._transition(view, broker, following)
        self._heartbeats.touch(broker.id, broker.epoch, request.current_metadata_offset, now_ms)
        if current is not following and following is BrokerControlState.CONTROLLED_SHUTDOWN:
            offset = view.image.offset + len(records)
            self._heartbeats.start_shutdown(broker.id, broker.epoch, offset, now_ms)
        if not records:
            # A transition and a failure of directories at once would be planned against the same
            # state; the broker reports its directories again.
            records = _directory_changes(view, broker, request)
        response = BrokerHeartbeatResponse(
            is_caught_up=is_caught_up,
            is_fenced=following in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW),
            should_shut_down=following is BrokerControlState.SHUTDOWN_NOW,
        )
        return ControllerResult(records, response)

    @staticmethod
    def _transition(
        view: ClusterView, broker: BrokerRegistration, following: BrokerControlState
    ) -> list[MetadataRecord]:
        current = state_of(broker)
        if current is following:
            return []
        if following is BrokerControlState.UNFENCED:
            return unfence(view, broker)
        if following is BrokerControlState.CONTROLLED_SHUTDOWN:
            return start_controlled_shutdown(view, broker)
        return [] if broker.fenced else fence(view, broker)

    def fence_stale_broker(self, view: ClusterView, now_ms: float) -> ControllerResult[int | None]:
        """Plan the fencing of one broker whose session has ended; the response is its id.

        Brokers are fenced one at a time, so that the last one of an ISR remains in it.
        """
        stale = self._heartbeats.stale_broker(view.image, now_ms)
        if stale is None:
            return ControllerResult((), None)
        return ControllerResult(fence(view, view.image.brokers[stale]), stale)

    @staticmethod
    def unregister_broker(
        view: ClusterView, request: UnregisterBrokerRequest
    ) -> ControllerResult[UnregisterBrokerResponse]:
        """Plan the removal of a broker.

        Raises:
            BrokerIdNotRegisteredError: The broker is not registered.
        """
        broker = view.image.broker(request.broker_id)
        if broker is None:
            raise BrokerIdNotRegisteredError(
                f"Broker ID {request.broker_id} is not currently registered"
            )
        return ControllerResult(
            unregister(view, broker), UnregisterBrokerResponse(error_message=None)
        )

    @staticmethod
    def allocate_producer_ids(
        view: ClusterView, request: AllocateProducerIdsRequest
    ) -> ControllerResult[AllocateProducerIdsResponse]:
        """Plan the allocation of a block of producer ids to a broker (KIP-730).

        Raises:
            StaleBrokerEpochError: The broker is not registered, or has another epoch.
        """
        view.check_broker_epoch(request.broker_id, request.broker_epoch)
        first = view.image.next_producer_id
        record = ProducerIdsRecord(
            broker_id=request.broker_id,
            broker_epoch=request.broker_epoch,
            next_producer_id=first + PRODUCER_ID_BLOCK,
        )
        response = AllocateProducerIdsResponse(
            producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK
        )
        return ControllerResult([record], response)

    @staticmethod
    def register_controller(
        view: ClusterView, request: ControllerRegistrationRequest
    ) -> ControllerResult[ControllerRegistrationResponse]:
        """Plan the registration of a controller.

        Raises:
            UnsupportedVersionError: metadata.version is below 3.7-IV0.
        """
        if not view.metadata_version.has_controller_registration:
            raise UnsupportedVersionError(
                "The current MetadataVersion is too old to support controller registrations."
            )
        record = RegisterControllerRecord(
            controller_id=request.controller_id,
            incarnation_id=request.incarnation_id,
            zk_migration_ready=request.zk_migration_ready,
            end_points=[
                ControllerEndpoint(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in request.listeners
            ],
            features=[
                ControllerFeature(
                    name=each.name,
                    min_supported_version=each.min_supported_version,
                    max_supported_version=each.max_supported_version,
                )
                for each in request.features
            ],
        )
        return ControllerResult([record], ControllerRegistrationResponse(error_message=None))


def _departures(
    view: ClusterView, known: BrokerRegistration, previous_epoch: int
) -> list[MetadataRecord]:
    """Return the changes of partitions before another incarnation of a broker is registered.

    It may lack records of the one before unless that one ended cleanly, which it proves by the
    epoch it has stored. It leaves every ISR in any case, as a fenced broker.
    """
    return leave(view, known.id, unclean=previous_epoch != known.epoch)


def _check_directories(view: ClusterView, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not view.metadata_version.has_directories:
        return
    problem = None
    if not directories:
        problem = "No directories specified in request"
    elif len(set(directories)) != len(directories):
        problem = "Duplicate directory ID in request"
    elif any(each in _RESERVED_IDS for each in directories):
        problem = "Reserved directory ID in request"
    else:
        brokers = view.image.brokers
        for other in brokers.values():
            shared = set(other.directories) & set(directories)
            if other.id != request.broker_id and shared:
                problem = (
                    f"Broker {request.broker_id} specifies directory "
                    f"{uuid_to_text(min(shared))}, which belongs to broker {other.id}"
                )
    if problem is not None:
        raise InvalidRegistrationError(problem)


def _check_features(view: ClusterView, request: BrokerRegistrationRequest) -> None:
    ranges = {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    if METADATA_VERSION not in ranges:
        raise InvalidRegistrationError(
            "Request features do not contain metadata.version. Cannot determine the broker's "
            "supported versions"
        )
    finalized = view.image.features
    for name, level in finalized.items():
        lowest, highest = ranges.get(name, (0, 0))
        if level > 0 and not lowest <= level <= highest:
            raise UnsupportedVersionError(
                f"Unable to register because the broker does not support finalized version "
                f"{level} of {name}. The broker wants a version between {lowest} and {highest}, "
                "inclusive."
            )


def _registration(
    view: ClusterView,
    request: BrokerRegistrationRequest,
    epoch: int,
    same: BrokerRegistration | None,
) -> RegisterBrokerRecord:
    """Return the record; a known incarnation keeps its epoch and its state."""
    directories = request.log_dirs if view.metadata_version.has_directories else []
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in request.listeners
        ],
        features=[
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in request.features
        ],
        rack=request.rack,
        fenced=same is None or same.fenced,
        in_controlled_shutdown=same is not None and same.in_controlled_shutdown,
        log_dirs=list(directories),
    )


def _directory_changes(
    view: ClusterView, broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    """Return the records for log directories that failed or were cordoned."""
    if not view.metadata_version.has_directories:
        return []
    records = directories_offline(view, broker, request.offline_log_dirs)
    cordoned = _known(request.cordoned_log_dirs, broker.directories)
    if (
        not records
        and view.metadata_version.has_cordoned_directories
        and cordoned is not None
        and set(cordoned) != set(broker.cordoned_directories)
    ):
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=cordoned
        )
        records = [change]
    return records


def _known(named: Iterable[bytes] | None, directories: Iterable[bytes]) -> list[bytes] | None:
    return None if named is None else [each for each in dict.fromkeys(named) if each in directories]
