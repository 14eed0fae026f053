"""Lets a broker of a test fail on request: at the n-th call of an API, in a way of one's choice."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Unpack

from kclient.broker.network.request_channel import Request
from kclient.broker.replication.delayed_operation import DelayedOperation
from kclient.broker.server.api_table import API_TABLE
from kclient.broker.server.broker_server import BrokerServer
from kclient.common.broker_errors import code_of
from kclient.common.errors import InvalidArgumentError, KafkaError
from kclient.common.runtime import Condition, Runtime, Task
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.message import Request as RequestMessage
from kclient.protocol.message import Response as ResponseMessage
from kclient.protocol.messages.produce import ProduceRequest
from kclient.testing.broker_fault import BrokerFault, Call, RequestSeen
from kclient.testing.watched_request import Fate, WatchedRequest

_log = logging.getLogger(__name__)

_REMEMBERED = 10_000
_PATIENCE = 30.0

CarryOut = Callable[[Request], None]
"""Handles a request as the broker does."""


class BrokerFaults:
    """Faults inside the broker of an `EmbeddedCluster`, which hands it out as ``cluster.faults``.

    Every method that sets a fault takes ``nth``, ``times`` and ``client_id`` to say which calls
    are meant, see `Call`, and returns the fault, whose ``hits`` tells how often it struck. Faults
    outlive a restart of the broker. Methods may be called from any thread.

    Attributes:
        requests: What reached the broker since the faults were first asked for, the last ten
            thousand requests.
        failure: What a function given to `edit` raised first; raised when the cluster is closed.
    """

    def __init__(self, runtime: Runtime, kill: Callable[[], None]) -> None:
        self.requests: deque[RequestSeen] = deque(maxlen=_REMEMBERED)
        self.failure: Exception | None = None
        self._runtime = runtime
        self._kill = kill
        # guards: the faults, what is held back and whether it is
        self._condition = runtime.tasks.condition()
        self._faults: list[BrokerFault] = []
        self._held: list[Callable[[], None]] = []
        self._muted = False
        self._broker: BrokerServer | None = None
        self._killing: Task | None = None

    def attach(self, broker: BrokerServer) -> None:
        """Take over the requests of a broker; the cluster calls this."""
        if self._killing is not None:
            self._killing.join(_PATIENCE)  # the data directory is in use until it is over
        with self._condition:
            self._held.clear()  # it belonged to a broker that is gone
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
        """Answer with an error.

        Args:
            api: API.
            error: Class of the error, or its code.
            handled: Whether the request takes effect all the same.
            **call: Which calls; the next one if nothing is said.
        """
        code = error if isinstance(error, int) else code_of(error)

        def doom(fate: Fate) -> None:
            fate.error_code = code
            fate.is_handled = handled

        return self._set(api, doom, call)

    def delay(
        self, api: ApiKey, seconds: float, *, answer_only: bool = False, **call: Unpack[Call]
    ) -> BrokerFault:
        """Keep requests back.

        Args:
            api: API.
            seconds: How long.
            answer_only: Whether the request takes effect at once and only its answer waits.
            **call: Which calls; all if nothing is said.
        """
        if not seconds >= 0:
            raise InvalidArgumentError(f"seconds: got {seconds!r}, expected 0 or more")

        def doom(fate: Fate) -> None:
            if answer_only:
                fate.answer_delay_ms += 1000.0 * seconds
            else:
                fate.delay_ms += 1000.0 * seconds

        return self._set(api, doom, {"times": None, **call})

    def drop_response(self, api: ApiKey, **call: Unpack[Call]) -> BrokerFault:
        """Handle requests, then close their connection instead of answering.

        Args:
            api: API.
            **call: Which calls; the next one if nothing is said.
        """

        def doom(fate: Fate) -> None:
            fate.is_answer_lost = True

        return self._set(api, doom, call)

    def disconnect(self, api: ApiKey, **call: Unpack[Call]) -> BrokerFault:
        """Close the connection of requests without handling them.

        Args:
            api: API.
            **call: Which calls; the next one if nothing is said.
        """

        def doom(fate: Fate) -> None:
            fate.is_refused = True

        return self._set(api, doom, call)

    def edit(
        self, api: ApiKey, change: Callable[[Any], object], **call: Unpack[Call]
    ) -> BrokerFault:
        """Change answers before they go out.

        Args:
            api: API.
            change: Gets the response and changes it in place.
            **call: Which calls; all if nothing is said.
        """

        def doom(fate: Fate) -> None:
            fate.changes.append(change)

        return self._set(api, doom, {"times": None, **call})

    def kill(
        self, api: ApiKey | None = None, *, handled: bool = False, **call: Unpack[Call]
    ) -> None:
        """Kill the broker, as a crash would: at once, or when a request comes.

        Args:
            api: API whose call is the end of the broker; None for now.
            handled: Whether that request takes effect, without being answered.
            **call: Which call; the next one if nothing is said.
        """
        if api is None:
            self._kill()
            return

        def doom(fate: Fate) -> None:
            fate.kills = True
            fate.is_handled = handled

        self._set(api, doom, call)

    def mute(self) -> None:
        """Let requests wait, and answers too, as those of a process do that is stopped."""
        with self._condition:
            self._muted = True

    def unmute(self) -> None:
        """Handle what waited, in its order, and answer."""
        with self._condition:
            self._muted = False
            held, self._held = self._held, []
        for go_on in held:
            go_on()

    def remove(self, fault: BrokerFault) -> None:
        """Take one fault back; no error if it was taken back before."""
        with self._condition:
            self._faults = [known for known in self._faults if known is not fault]

    def heal(self) -> None:
        """Take every fault back; what waits goes on."""
        with self._condition:
            self._faults = []
        self.unmute()

    # --- requests on their way

    def intercept(self, request: Request, carry_out: CarryOut) -> None:
        """Apply the faults to a request; `attach` makes the broker call this for each request."""
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

    def _unless_muted(self, go_on: Callable[[], None]) -> None:
        with self._condition:
            if self._muted:
                self._held.append(go_on)
                return
        go_on()

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
            self._give(request, _error_answer(request.body, fate.error_code), None)
        else:
            carry_out(WatchedRequest(request, fate, self._answer))
            return
        request.release()

    def _answer(
        self, request: WatchedRequest, message: ResponseMessage, version: int | None
    ) -> None:
        fate, original = request.fate, request.original
        if fate.kills:
            self._kill_soon()
            return
        answer = None if fate.is_answer_lost else self._changed(request, message)
        self._after(
            fate.answer_delay_ms,
            lambda: self._unless_muted(lambda: self._give(original, answer, version)),
        )

    def _changed(self, request: WatchedRequest, answer: ResponseMessage) -> ResponseMessage | None:
        fate = request.fate
        if fate.error_code is not None and request.body is not None:
            return _error_answer(request.body, fate.error_code)
        try:
            for change in fate.changes:
                change(answer)
        except Exception as error:  # noqa: BLE001 (raised when the cluster is closed)
            _log.exception("%r: a change to its answer failed", request.original)
            self.failure = self.failure or error
            return None
        return answer

    def _give(self, request: Request, answer: ResponseMessage | None, version: int | None) -> None:
        if answer is None:
            request.close_connection()
        else:
            request.respond(answer, version)

    def _after(self, delay_ms: float, act: Callable[[], None]) -> None:
        broker = self._broker
        if delay_ms <= 0 or broker is None or not broker.is_running:
            act()
            return
        due_ms = self._runtime.clock.monotonic_ms() + delay_ms
        timer = broker.services.replica_manager.timer
        timer.add(_Later(self._runtime.tasks.condition(), due_ms, act))

    def _kill_soon(self) -> None:
        """Kill the broker from outside of its own threads, which it waits for."""

        def step() -> bool:
            self._kill()
            return False

        self._killing = self._runtime.tasks.spawn("kclient-fault-kill", step)


class _Later(DelayedOperation):
    """Something that waits for its time only."""

    def __init__(self, lock: Condition, deadline_ms: float, act: Callable[[], None]) -> None:
        super().__init__(lock, deadline_ms)
        self._act = act

    def try_complete(self) -> bool:
        """Wait on: nothing but the time completes it."""
        return False

    def on_complete(self) -> None:
        """Do what was waited for."""
        self._act()


def _error_answer(body: RequestMessage, code: int) -> ResponseMessage | None:
    """Return the answer that tells an error; None where the connection is closed instead."""
    if isinstance(body, ProduceRequest) and body.acks == 0:
        return None
    return API_TABLE[body.api_key].error_response(body, code)
