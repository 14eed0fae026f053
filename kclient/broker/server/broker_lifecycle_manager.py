"""Registration of a broker with the controller, and its heartbeats."""

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from math import inf
from typing import Any

from kclient.broker.metadata.features import SUPPORTED_FEATURES
from kclient.broker.server.broker_config import BrokerConfig
from kclient.common.broker_errors import DuplicateBrokerRegistrationError
from kclient.common.errors import KafkaError, KafkaTimeoutError, RetriableError
from kclient.common.runtime import Condition
from kclient.network.endpoint import Endpoint
from kclient.protocol.message import Request
from kclient.protocol.messages.node_registration import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationFeature,
    BrokerRegistrationListener,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_log = logging.getLogger(__name__)

_CATCH_UP_MS = 10.0
_RETRY_MS = 50.0
_TEMPORARY = (RetriableError, KafkaTimeoutError, DuplicateBrokerRegistrationError)
"""Errors after which a broker tries again to register: it may be known from its earlier life."""

Send = Callable[[Request, Callable[[Any], None]], None]
"""Sends a request to the controller; the callback gets the response or the `KafkaError`."""


class BrokerState(Enum):
    """State of a broker (Kafka: BrokerState)."""

    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    PENDING_CONTROLLED_SHUTDOWN = "pending controlled shutdown"
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

    One request is in progress at a time. Its response may be reported in any thread; the condition
    guards what it changes.

    Attributes:
        state: State of the broker.
        broker_epoch: Epoch of the registration, -1 before.
        failure: Error that has ended the broker, or None; see `fail`.
    """

    def __init__(
        self,
        config: BrokerConfig,
        registration: BrokerRegistrationRequest,
        send: Send,
        metadata_offset: Callable[[], int],
        wakeup: Callable[[], None],
        changed: Condition,
    ) -> None:
        """Create a broker that is not registered.

        Args:
            config: Settings of the broker.
            registration: The registration.
            send: Sends a request to the controller.
            metadata_offset: Returns the offset of the published image.
            wakeup: Called when a response has been received, so that `step` is called soon.
            changed: The condition.
        """
        self._config = config
        self._registration = registration
        self._send = send
        self._metadata_offset = metadata_offset
        self._wakeup = wakeup
        self._changed = changed
        self._next_ms = 0.0
        self._register_until_ms = inf
        self._may_unfence = False
        self._on_caught_up: Callable[[], None] = _do_nothing
        self._retry = False
        self._last_error = ""
        self._is_waiting = False
        self._refusal: KafkaError | None = None
        self.failure: KafkaError | None = None
        self.state = BrokerState.STARTING
        self.broker_epoch = -1

    def start(self, now_ms: float, on_caught_up: Callable[[], None] | None = None) -> None:
        """Start to register, until initial.broker.registration.timeout.ms has passed.

        Args:
            now_ms: Monotonic time.
            on_caught_up: Called when the broker has the metadata with its registration, before it
                is unfenced; if None, the broker is unfenced without a notice.
        """
        self._register_until_ms = now_ms + self._config.initial_broker_registration_timeout_ms
        self._may_unfence = on_caught_up is None
        self._on_caught_up = on_caught_up or _do_nothing

    def step(self, now_ms: float) -> float:
        """Send what is due; return the monotonic time of the next call.

        Raises:
            KafkaError: The controller refuses the broker; it has to stop.
        """
        if self._refusal is not None:
            raise self._refusal
        if self.state is BrokerState.STARTING:
            self._check_deadline(now_ms)
        if self._is_waiting:
            return self._register_until_ms if self.state is BrokerState.STARTING else inf
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
            self._next_ms = now_ms + self._interval_ms()
            self._send(self._heartbeat(), self._on_heartbeat)
        if not self._is_waiting:
            return self._next_ms
        return self._register_until_ms if self.state is BrokerState.STARTING else inf

    def begin_controlled_shutdown(self, timeout_ms: float) -> bool:
        """Ask the controller for other leaders, and wait until the broker leads no partition.

        Args:
            timeout_ms: Longest wait.

        Returns:
            Whether the broker may stop; False after the timeout, or if it is not running.
        """
        with self._changed:
            if self.state is not BrokerState.RUNNING:
                return False
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._next_ms = 0.0
        self._wakeup()
        with self._changed:
            pending = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._changed.wait_for(lambda: self.state is not pending, timeout_ms / 1000.0)
            return self.state is BrokerState.SHUTTING_DOWN

    def await_running(self, timeout_ms: float) -> bool:
        """Return whether the broker is running, after at most a time.

        Raises:
            KafkaError: The controller refuses the broker.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.state is BrokerState.RUNNING or self.failure is not None,
                timeout_ms / 1000.0,
            )
            if self.failure is not None:
                raise self.failure
            return self.state is BrokerState.RUNNING

    def fail(self, error: KafkaError) -> None:
        """Report the error that `step` has raised to those who wait, after it was logged."""
        with self._changed:
            self.failure = error
            self._changed.notify_all()

    def shutdown(self) -> None:
        """Send nothing any more."""
        with self._changed:
            self._set_state(BrokerState.SHUTTING_DOWN)

    def _interval_ms(self) -> float:
        if self.state is BrokerState.RUNNING:
            return float(self._config.broker_heartbeat_interval_ms)
        return _CATCH_UP_MS

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._metadata_offset(),
            want_fence=not self._may_unfence,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
        )

    def _check_deadline(self, now_ms: float) -> None:
        """Check the time since the start.

        Raises:
            KafkaTimeoutError: The broker could not register in time.
        """
        if now_ms >= self._register_until_ms:
            raise KafkaTimeoutError(
                f"broker {self._registration.broker_id}: not registered within "
                f"{self._config.initial_broker_registration_timeout_ms} ms "
                "(initial.broker.registration.timeout.ms)"
            )

    def _on_registered(self, outcome: BrokerRegistrationResponse | KafkaError) -> None:
        with self._changed:
            if isinstance(outcome, KafkaError):
                self._on_error("registration", outcome)
            elif self.state is BrokerState.STARTING:
                self.broker_epoch = outcome.broker_epoch
                self._set_state(BrokerState.RECOVERY)
        self._responded()

    def _on_heartbeat(self, outcome: BrokerHeartbeatResponse | KafkaError) -> None:
        catches_up = False
        with self._changed:
            if isinstance(outcome, KafkaError):
                self._on_error("heartbeat", outcome)
            else:
                catches_up = outcome.is_caught_up and not self._may_unfence
                self._may_unfence = self._may_unfence or catches_up
                self._set_state(_following(self.state, outcome))
        if catches_up:
            self._on_caught_up()
        self._responded()

    def _on_error(self, kind: str, error: KafkaError) -> None:
        joins = self.state in (BrokerState.STARTING, BrokerState.RECOVERY)
        if joins and not isinstance(error, _TEMPORARY):
            self._refusal = error
            return
        if str(error) != self._last_error:
            _log.warning("%s of broker %d: %s", kind, self._registration.broker_id, error)
        self._last_error = str(error)
        self._retry = True

    def _set_state(self, state: BrokerState) -> None:
        """Change the state, and wake those who wait for another one; the condition is held."""
        if state is not self.state:
            self.state = state
            self._changed.notify_all()

    def _responded(self) -> None:
        self._is_waiting = False
        self._wakeup()


def _following(state: BrokerState, response: BrokerHeartbeatResponse) -> BrokerState:
    """Return the state after the response to a heartbeat."""
    if state is BrokerState.SHUTTING_DOWN or response.should_shut_down:
        return BrokerState.SHUTTING_DOWN
    if state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
        return state
    return BrokerState.RECOVERY if response.is_fenced else BrokerState.RUNNING


def _do_nothing() -> None:
    return
