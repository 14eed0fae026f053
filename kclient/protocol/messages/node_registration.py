"""Registration of brokers and controllers with the active controller (KIP-631, KIP-919).

- BrokerRegistration (62), BrokerHeartbeat (63), UnregisterBroker (64).
- ControllerRegistration (70), UnregisterController (94).
"""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import (
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from kclient.protocol.message import Request, Response


class BrokerRegistrationResponse(Response, versions="0-4", flexible="0+"):
    """Epoch of the registered broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)


class BrokerRegistrationListener(Struct):
    """Address of a broker at a listener."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class BrokerRegistrationFeature(Struct):
    """Levels of a feature that a broker supports."""

    name: str = string(map_key=True)
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class BrokerRegistrationRequest(
    Request,
    api_key=ApiKey.BROKER_REGISTRATION,
    response=BrokerRegistrationResponse,
    versions="0-4",
    flexible="0+",
):
    """Registers a broker process with the controller."""

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[BrokerRegistrationListener] = array(BrokerRegistrationListener)
    features: list[BrokerRegistrationFeature] = array(BrokerRegistrationFeature)
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean("1+")
    log_dirs: list[bytes] = array(uuid, "2+", ignorable=True)
    previous_broker_epoch: int = int64("3+", default=-1, ignorable=True)


class BrokerHeartbeatResponse(Response, versions="0-2", flexible="0+"):
    """State of the broker at the controller."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


class BrokerHeartbeatRequest(
    Request,
    api_key=ApiKey.BROKER_HEARTBEAT,
    response=BrokerHeartbeatResponse,
    versions="0-2",
    flexible="0+",
):
    """Reports that a broker is alive, and what it wants."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(uuid, "1+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "2+", nullable="2+", tag=1, default=None)


class UnregisterBrokerResponse(Response, versions="0", flexible="0+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UnregisterBrokerRequest(
    Request,
    api_key=ApiKey.UNREGISTER_BROKER,
    response=UnregisterBrokerResponse,
    versions="0",
    flexible="0+",
):
    """Removes the registration of a broker."""

    broker_id: int = int32()


class ControllerRegistrationResponse(Response, versions="0", flexible="0+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class ControllerRegistrationListener(Struct):
    """Address of a controller at a listener."""

    name: str = string(map_key=True)
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class ControllerRegistrationFeature(Struct):
    """Levels of a feature that a controller supports."""

    name: str = string(map_key=True)
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class ControllerRegistrationRequest(
    Request,
    api_key=ApiKey.CONTROLLER_REGISTRATION,
    response=ControllerRegistrationResponse,
    versions="0",
    flexible="0+",
):
    """Registers a controller process with the active controller."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[ControllerRegistrationListener] = array(ControllerRegistrationListener)
    features: list[ControllerRegistrationFeature] = array(ControllerRegistrationFeature)


class UnregisterControllerResponse(Response, versions="0", flexible="0+"):
    """The outcome."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UnregisterControllerRequest(
    Request,
    api_key=ApiKey.UNREGISTER_CONTROLLER,
    response=UnregisterControllerResponse,
    versions="0",
    flexible="0+",
):
    """Removes the registration of a controller."""

    controller_id: int = int32()
