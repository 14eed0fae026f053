"""Faults inside the broker of a test, at chosen calls of an API."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Unpack

from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.server.broker_server import BrokerServer
from kclient.broker.server.kafka_apis import API_TABLE
from kclient.common.broker_errors import code_of
from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Condition, Runtime, Task
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.produce import ProduceRequest
from kclient.testing.broker_fault import BrokerFault, Call, Fate, RequestSeen, WatchedRequest

_log = logging.getLogger(__name__)

_REMEMBERED = 10_000
_PATIENCE = 30.0

CarryOut = Callable[[Request], None]
"""Handles a request as the broker does."""


class BrokerFaults(ProcessBound):
    """Faults inside the broker of an `EmbeddedCluster`, available as ``cluster.faults``.

    Every method that sets a fault takes ``nth``, ``times`` and ``client_id`` to select calls, see
    `Call`, and returns the fault, whose ``hits`` counts the calls that it affected. Faults
    remain in force over a restart of the broker. Methods may be called from any thread.

    Attributes:
        requests: Requests that reached the broker since the faults were first used, the last ten
            thousand.
        failure: First error of a function given to `edit`; raised when the cluster is closed.
    """

    def __init__(self, runtime: Runtime, kill: Callable[[], None]) -> None:
        self.requests: deque[RequestSeen] = deque(maxlen=_REMEMBERED)
        self.failure: Exception | None = None
        self._clock = runtime.clock
        self._tasks = runtime.tasks
        self._kill = kill
        # guards: the faults, the requests that are held, and whether requests are held
        self._condition = runtime.tasks.condition()
        self._faults: list[BrokerFault] = []
        self._held: list[Callable[[], None]] = []
        self._muted = False
        self._broker: BrokerServer | None = None
        self._killing: Task | None = None

    def __repr__(self) -> str:
        return f"<BrokerFaults: {len(self._faults)} faults, {len(self.requests)} requests seen>"

    def attach(self, broker: BrokerServer) -> None:
        """Intercept the requests of a broker; the cluster calls this."""
        if self._killing is not None:
            self._killing.join(_PATIENCE)  # the broker uses the data directory until then
        with self._condition:
            self._held.clear()  # requests to the previous broker
        self._broker = broker
        broker.intercept(self.intercept)

    # --- setting faults

    def fail(
        self,
        api: ApiKey,
        error: type[KafkaError] | int,
        *,
        handled: bool = False,
        **call: Unpack[Call],
    ) -> BrokerFault:
        """Respond with an error.

        Args:
            api: API.
            error: Class of the error, or its code.
            handled: Whether the request is handled before the error is returned.
            **call: Calls to affect; by default the next one.
        """
        code = error if isinstance(error, int) else code_of(error)

        def doom(fate: Fate) -> None:
            fate.error_code = code
            fate.is_handled = handled

        return self._set(api, doom, call)

    def delay(
        self, api: ApiKey, seconds: float, *, response_only: bool = False, **call: Unpack[Call]
    ) -> BrokerFault:
        """Delay requests or their responses.

        Args:
            api: API.
            seconds: Duration.
            response_only: Whether the request is handled at once and only its response is delayed.
            **call: Calls to affect; by default all.
        """
        if not seconds >= 0:
            raise InvalidArgumentError(f"seconds: got {seconds!r}, expected 0 or more")

        def doom(fate: Fate) -> None:
            if response_only:
                fate.response_delay_ms += 1000.0 * seconds
            else:
                fate.delay_ms += 1000.0 * seconds

        return self._set(api, doom, {"times": None, **call})

    def drop_response(self, api: ApiKey, **call: Unpack[Call]) -> BrokerFault:
        """Handle requests, then close their connection instead of responding.

        Args:
            api: API.
            **call: Calls to affect; by default the next one.
        """

        def doom(fate: Fate) -> None:
            fate.is_response_lost = True

        return self._set(api, doom, call)

    def disconnect(self, api: ApiKey, **call: Unpack[Call]) -> BrokerFault:
        """Close the connection of requests without handling them.

        Args:
            api: API.
            **call: Calls to affect; by default the next one.
        """

        def doom(fate: Fate) -> None:
            fate.is_refused = True

        return self._set(api, doom, call)

    def edit(
        self, api: ApiKey, change: Callable[[Any], object], **call: Unpack[Call]
    ) -> BrokerFault:
        """Change responses before they are sent.

        Args:
            api: API.
            change: Changes the response in place.
            **call: Calls to affect; by default all.
        """

        def doom(fate: Fate) -> None:
            fate.changes.append(change)

        return self._set(api, doom, {"times": None, **call})

    def kill(
        self, api: ApiKey | None = None, *, handled: bool = False, **call: Unpack[Call]
    ) -> None:
        """Kill the broker, as a crash would: at once, or when a request arrives.

        Args:
            api: API whose call kills the broker; None to kill it now.
            handled: Whether that request is handled, without a response.
            **call: Call to affect; by default the next one.
        """
        if api is None:
            self._kill()
            return

        def doom(fate: Fate) -> None:
            fate.kills = True
            fate.is_handled = handled

        self._set(api, doom, call)

    def mute(self) -> None:
        """Hold requests and responses, like a broker whose process is stopped."""
        with self._condition:
            self._muted = True

    def unmute(self) -> None:
        """Handle the held requests in their order, and send the held responses."""
        with self._condition:
            self._muted = False
            held, self._held = self._held, []
        for proceed in held:
            proceed()

    def remove(self, fault: BrokerFault) -> None:
        """Remove one fault. Idempotent."""
        with self._condition:
            self._faults = [known for known in self._faults if known is not fault]

    def heal(self) -> None:
        """Remove all faults; held requests and responses proceed."""
        with self._condition:
            self._faults = []
        self.unmute()

    # --- requests in flight

    def intercept(self, request: Request, carry_out: CarryOut) -> None:
        """Apply the faults to a request; the broker calls this for each request after `attach`."""
        header = request.header
        self.requests.append(
            RequestSeen(
                header.api_key,
                header.api_version,
                header.correlation_id,
                header.client_id,
                request.connection_id,
                request.body,
            )
        )
        self._unless_muted(lambda: self._judge(request, carry_out))

    def _set(self, api: ApiKey, doom: Callable[[Fate], None], call: Call) -> BrokerFault:
        fault = BrokerFault(api, doom, **call)
        with self._condition:
            self._faults = [*self._faults, fault]
        return fault

    def _unless_muted(self, proceed: Callable[[], None]) -> None:
        with self._condition:
            if self._muted:
                self._held.append(proceed)
                return
        proceed()

    def _judge(self, request: Request, carry_out: CarryOut) -> None:
        fate = Fate()
        with self._condition:
            for fault in self._faults:
                fault.apply(request, fate)
        self._after(fate.delay_ms, lambda: self._execute(request, fate, carry_out))

    def _execute(self, request: Request, fate: Fate, carry_out: CarryOut) -> None:
        if fate.is_refused:
            request.close_connection()
        elif fate.kills and not fate.is_handled:
            self._kill_soon()
        elif fate.error_code is not None and not fate.is_handled and request.body is not None:
            self._send(request, _error_response(request.body, fate.error_code), None)
        else:
            carry_out(WatchedRequest(request, fate, self._respond))
            return
        request.release()

    def _respond(
        self, request: WatchedRequest, message: ResponseMessage, version: int | None
    ) -> None:
        fate, original = request.fate, request.original
        if fate.kills:
            self._kill_soon()
            return
        response = None if fate.is_response_lost else self._changed(request, message)
        self._after(
            fate.response_delay_ms,
            lambda: self._unless_muted(lambda: self._send(original, response, version)),
        )

    def _changed(
        self, request: WatchedRequest, response: ResponseMessage
    ) -> ResponseMessage | None:
        fate = request.fate
        if fate.error_code is not None and request.body is not None:
            return _error_response(request.body, fate.error_code)
        try:
            for change in fate.changes:
                change(response)
        except Exception as error:  # noqa: BLE001 (raised when the cluster is closed)
            _log.exception("%r: a change to its response failed", request.original)
            self.failure = self.failure or error
            return None
        return response

    def _send(
        self, request: Request, response: ResponseMessage | None, version: int | None
    ) -> None:
        if response is None:
            request.close_connection()
        else:
            request.respond(response, version)

    def _after(self, delay_ms: float, act: Callable[[], None]) -> None:
        broker = self._broker
        if delay_ms <= 0 or broker is None or not broker.is_running:
            act()
            return
        due_ms = self._clock.monotonic_ms() + delay_ms
        replicas = broker.services.replica_manager
        replicas.timer.add(_Later(self._tasks.condition(), due_ms, act))

    def _kill_soon(self) -> None:
        """Kill the broker from a thread that is not its own, since `kill` joins those."""

        def step() -> bool:
            self._kill()
            return False

        self._killing = self._tasks.spawn("kclient-fault-kill", step)


class _Later(DelayedOperation):
    """A delayed action that completes at its deadline only."""

    def __init__(self, lock: Condition, deadline_ms: float, act: Callable[[], None]) -> None:
        super().__init__(lock, deadline_ms)
        self._act = act

    def try_complete(self) -> bool:
        """Return False: only the deadline completes it."""
        return False

    def on_complete(self) -> None:
        """Run the action."""
        self._act()


def _error_response(body: RequestMessage, code: int) -> ResponseMessage | None:
    """Return an error response; None if the connection is closed instead."""
    if isinstance(body, ProduceRequest) and body.acks == 0:
        return None
    return API_TABLE[body.api_key].error_response(body, code)
