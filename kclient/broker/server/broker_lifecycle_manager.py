"""Registration of a broker with the controller, and its heartbeats."""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from math import inf
from typing import Any

from kclient.broker.metadata.features import SUPPORTED_FEATURES
from kclient.common.errors import KafkaError
from kclient.network.endpoint import Endpoint
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationFeature,
    BrokerRegistrationListener,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_log = logging.getLogger(__name__)

HEARTBEAT_INTERVAL_MS = 2000.0
"""Default of ``broker.heartbeat.interval.ms``."""
_CATCH_UP_MS = 10.0
_RETRY_MS = 50.0

Send = Callable[[object, Callable[[Any], None]], None]
"""Sends a request to the controller; the callback gets the response or the `KafkaError`."""


class BrokerState(Enum):
    """State of a broker (Kafka: BrokerState)."""

    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting down"


def registration_of(
    node_id: int,
    cluster_id: str,
    incarnation_id: bytes,
    endpoints: Sequence[Endpoint],
) -> BrokerRegistrationRequest:
    """Return the registration of a broker; rack, directory and previous epoch are to be added."""
    return BrokerRegistrationRequest(
        broker_id=node_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation_id,
        listeners=[
            BrokerRegistrationListener(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in endpoints
        ],
        features=[
            BrokerRegistrationFeature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, (low, high) in SUPPORTED_FEATURES.items()
        ],
        rack=None,
    )


class BrokerLifecycleManager:
    """Life of a broker in the cluster (Kafka: BrokerLifecycleManager).

    One request is in progress at a time. Its response may be reported in any thread; the fields are
    then written before `is_waiting` becomes false.

    Attributes:
        state: State of the broker.
        broker_epoch: Epoch of the registration, -1 before.
    """

    def __init__(
        self,
        registration: BrokerRegistrationRequest,
        send: Send,
        metadata_offset: Callable[[], int],
        wakeup: Callable[[], None],
    ) -> None:
        """Create a broker that is not registered.

        Args:
            registration: The registration.
            send: Sends a request to the controller.
            metadata_offset: Returns the offset of the published image.
            wakeup: Called when a response has been received, so that `step` is called soon.
        """
        self._registration = registration
        self._send = send
        self._metadata_offset = metadata_offset
        self._wakeup = wakeup
        self._next_ms = 0.0
        self._retry = False
        self._is_waiting = False
        self.failure: KafkaError | None = None
        self.state = BrokerState.STARTING
        self.broker_epoch = -1

    def step(self, now_ms: float) -> float:
        """Send what is due; return the monotonic time of the next call.

        Raises:
            KafkaError: The controller refuses the broker; it has to stop.
        """
        if self.failure is not None:
            raise self.failure
        if self._is_waiting:
            return inf
        if self._retry:
            self._retry = False
            self._next_ms = now_ms + _RETRY_MS
        if now_ms < self._next_ms or self.state is BrokerState.SHUTTING_DOWN:
            return max(self._next_ms, now_ms)
        self._is_waiting = True
        if self.state is BrokerState.STARTING:
            self._next_ms = now_ms
            self._send(self._registration, self._on_registered)
        else:
            is_running = self.state is BrokerState.RUNNING
            self._next_ms = now_ms + (HEARTBEAT_INTERVAL_MS if is_running else _CATCH_UP_MS)
            request = BrokerHeartbeatRequest(
                broker_id=self._registration.broker_id,
                broker_epoch=self.broker_epoch,
                current_metadata_offset=self._metadata_offset(),
            )
            self._send(request, self._on_heartbeat)
        return inf if self._is_waiting else self._next_ms

    def shutdown(self) -> None:
        """Send nothing any more."""
        self.state = BrokerState.SHUTTING_DOWN

    def _on_registered(self, outcome: BrokerRegistrationResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            self._fail(outcome)
        else:
            self.broker_epoch = outcome.broker_epoch
            self.state = BrokerState.RECOVERY
        self._responded()

    def _on_heartbeat(self, outcome: BrokerHeartbeatResponse | KafkaError) -> None:
        if isinstance(outcome, KafkaError):
            self._fail(outcome)
        elif self.state is not BrokerState.SHUTTING_DOWN:
            self.state = BrokerState.RECOVERY if outcome.is_fenced else BrokerState.RUNNING
        self._responded()

    def _fail(self, error: KafkaError) -> None:
        if self.state is BrokerState.RUNNING:
            _log.warning("heartbeat of broker %d: %s", self._registration.broker_id, error)
            self._retry = True
        else:
            self.failure = error

    def _responded(self) -> None:
        self._is_waiting = False
        self._wakeup()
