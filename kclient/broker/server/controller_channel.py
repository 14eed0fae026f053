"""Requests of a broker to the active controller (Kafka: NodeToControllerChannelManager)."""

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, NamedTuple

from kclient.broker.controller.quorum_controller import QuorumController
from kclient.broker.controller.topic_requests import handle_request
from kclient.broker.metadata.metadata_image import MetadataImage
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.raft.raft_types import NO_NODE
from kclient.broker.server.metadata_cache import MetadataCache
from kclient.broker.server.raft_manager import RaftManager
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import (
    NONE,
    NotControllerError,
    NotLeaderOrFollowerError,
    RequestTimedOutError,
    code_of,
    error_of_code,
)
from kclient.common.errors import DisconnectedError, KafkaError
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.quorum import DescribeQuorumRequest
from kclient.protocol.messages.raft_voters import AddRaftVoterRequest, RemoveRaftVoterRequest
from kclient.protocol.messages.topics import CreateTopicsResponse

_log = logging.getLogger(__name__)

_RETRY_MS = 50.0
_MOVED = frozenset({code_of(NotControllerError), code_of(NotLeaderOrFollowerError)})
_OF_THE_QUORUM = (AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest)
_NO_OFFSET = -1
_IMAGE_WAIT_MS = 1000.0
"""Time after the commit for which a change without a deadline waits for this broker's image."""

Outcome = Response | KafkaError

OnDone = Callable[[Any], None]
"""Receives the response, or the `KafkaError` of the whole request."""

Applied = Callable[[Any, MetadataImage], bool]
"""Returns whether an image has the change that a response reports."""


class _Item(NamedTuple):
    """Request with what its outcome is reported to.

    Attributes:
        request: The request.
        on_done: Called with the outcome and the offset of the latest committed record; the offset
            is -1 if the controller is on another node.
        deadline_ms: Monotonic time until which the request is sent again.
    """

    request: Request
    on_done: Callable[[Outcome, int], None]
    deadline_ms: float


class ControllerChannel:
    """Sends requests to the active controller, and again if another node has become that.

    A request to the controller of this node is an event of the quorum. Another one is sent to the
    controller's listener by the thread that calls `step`, which also sends a request again that has
    found no active controller, until its deadline. The only voter of a quorum needs no such thread.
    """

    def __init__(
        self,
        raft: RaftManager,
        metadata: MetadataCache,
        clock: Clock,
        timeout_ms: float,
        sender: InterBrokerSender | None = None,
    ) -> None:
        """Create a channel.

        Args:
            raft: Quorum of this node.
            metadata: Metadata that this broker has published.
            clock: Clock.
            timeout_ms: Time for which a request is sent again if there is no response.
            sender: Connections to the controllers of other nodes; None for the only voter.
        """
        self._raft = raft
        self._metadata = metadata
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._sender = sender
        self._later: deque[tuple[float, _Item]] = deque()
        self._last_leader = NO_NODE

    def send(self, request: Request, on_done: OnDone) -> None:
        """Send a request; callable from any thread.

        Args:
            request: The request.
            on_done: Gets the response when its records are committed, or the `KafkaError`. It is
                called by the thread of the quorum, or by the one that calls `step`.
        """
        self._start(request, lambda outcome, _offset: on_done(outcome))

    def change(
        self,
        request: Request,
        on_done: OnDone,
        applied: Applied | None = None,
        deadline_ms: float = inf,
    ) -> None:
        """Send a change for a client, and report it when this broker has applied it.

        A created topic can thus be used at once. To open the partitions of a large topic takes
        seconds. The change is committed before, so that the outcome is reported without the image
        at a deadline.

        Args:
            request: The request.
            on_done: As that of `send`.
            applied: Returns whether an image has the change; if it is None, a change by the
                controller of another node is not waited for.
            deadline_ms: Monotonic time until which the image is waited for; if it is infinite, that
                is 1 s after the commit.
        """

        def on_committed(outcome: Outcome, offset: int) -> None:
            if isinstance(outcome, KafkaError) or (offset == _NO_OFFSET and applied is None):
                on_done(outcome)
                return
            until_ms = deadline_ms
            if until_ms == inf:
                until_ms = self._clock.monotonic_ms() + _IMAGE_WAIT_MS
            self._metadata.await_image(
                lambda image: _has_change(image, offset, outcome, applied),
                until_ms,
                lambda: on_done(outcome),
            )

        self._start(request, on_committed)

    def step(self, now_ms: float) -> float:
        """Send again what is due; return the milliseconds until the next call."""
        self._leave_former_leader()
        for _ in range(len(self._later)):
            due_ms, item = self._later.popleft()
            if due_ms <= now_ms:
                self._send(item)
            else:
                self._later.append((due_ms, item))
        return max(0.0, min((due for due, _ in self._later), default=inf) - now_ms)

    def _start(self, request: Request, on_done: Callable[[Outcome, int], None]) -> None:
        self._send(_Item(request, on_done, self._clock.monotonic_ms() + self._timeout_ms))

    def _leave_former_leader(self) -> None:
        """Fail the requests to a controller that has been replaced: it may never respond."""
        former, self._last_leader = self._last_leader, self._raft.leader_id
        if self._sender is not None and former not in (NO_NODE, self._last_leader):
            self._sender.abandon(former)

    def _send(self, item: _Item) -> None:
        leader_id = self._raft.leader_id
        if self._sender is None or leader_id == self._raft.node_id:
            self._send_locally(item)
            return
        node = self._raft.controller_node(leader_id)
        if node is None:
            self._retry(item, NotControllerError("No controller appears to be active."))
        else:
            self._send_to(self._sender, node, item)

    def _send_locally(self, item: _Item) -> None:
        if isinstance(item.request, _OF_THE_QUORUM):
            self._raft.handle_request(item.request, partial(self._on_response, item))
        else:
            self._raft.submit(partial(self._handle, item))

    def _send_to(self, sender: InterBrokerSender, node: Node, item: _Item) -> None:
        timeout_ms = max(0.0, item.deadline_ms - self._clock.monotonic_ms())
        sender.send(node, SimpleBuilder(item.request), partial(self._on_response, item), timeout_ms)
        sender.wakeup()

    def _handle(self, item: _Item, controller: QuorumController) -> None:
        def on_done(outcome: Outcome) -> None:
            if isinstance(outcome, NotControllerError):
                self._retry(item, outcome)
            else:
                _report(item, outcome, controller.image.offset)

        handle_request(controller, item.request, on_done)

    def _on_response(self, item: _Item, outcome: Outcome) -> None:
        if isinstance(outcome, DisconnectedError | NotControllerError):
            self._retry(item, outcome)
            return
        codes = [] if isinstance(outcome, KafkaError) else error_codes(outcome)
        if not _MOVED.isdisjoint(codes):
            self._retry(item, NotControllerError("The controller has moved."))
            return
        code = getattr(outcome, "error_code", NONE)
        if code != NONE:
            outcome = _error(code, getattr(outcome, "error_message", None))
        _report(item, outcome, _NO_OFFSET)

    def _retry(self, item: _Item, error: KafkaError) -> None:
        """Send a request again soon; at its deadline, or without a thread that can, it fails."""
        now_ms = self._clock.monotonic_ms()
        if self._sender is None:
            _report(item, error, _NO_OFFSET)
        elif now_ms + _RETRY_MS > item.deadline_ms:
            name = type(item.request).__name__
            failure = RequestTimedOutError(f"{name}: no active controller in time: {error}")
            _report(item, failure, _NO_OFFSET)
        else:
            self._later.append((now_ms + _RETRY_MS, item))
            self._sender.wakeup()


def _error(code: int, message: str | None) -> KafkaError:
    """Return the error of a response, with the text that the client gets."""
    kind = KafkaError.by_code(code)
    return error_of_code(code, message) if kind is None or not message else kind(message)


def are_created(response: CreateTopicsResponse, image: MetadataImage) -> bool:
    """Return whether an image has all topics that were created."""
    return all(
        result.error_code != NONE or result.topic_id in image.topic_names
        for result in response.topics
    )


def error_codes(response: Response) -> list[int]:
    """Return the error codes of a response, and those of its topics or results."""
    codes = [getattr(response, "error_code", NONE)]
    for name in ("topics", "results", "responses", "filter_results"):
        codes += [getattr(each, "error_code", NONE) for each in getattr(response, name, None) or ()]
    return codes


def _has_change(
    image: MetadataImage, offset: int, response: Response, applied: Applied | None
) -> bool:
    if offset != _NO_OFFSET:
        return image.offset >= offset
    return applied is None or applied(response, image)


def _report(item: _Item, outcome: Outcome, offset: int) -> None:
    """Report an outcome; a defect of one request must not end the threads of the metadata."""
    try:
        item.on_done(outcome, offset)
    except Exception:  # noqa: BLE001 (any defect of the handler)
        _log.exception("the response to a change of the metadata could not be sent")
