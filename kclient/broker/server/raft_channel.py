"""Requests of the quorum to the controllers of other nodes (Kafka: KafkaNetworkChannel)."""

from functools import partial

from kclient.broker.controller.event_queue import EventQueue
from kclient.broker.network.inter_broker_sender import InterBrokerSender
from kclient.broker.raft.raft_messages import response_head
from kclient.broker.raft.raft_types import RaftNode
from kclient.broker.raft.request_manager import OnResponse, Outcome
from kclient.client.client_request import SimpleBuilder
from kclient.common.broker_errors import InconsistentClusterIdError
from kclient.common.errors import IllegalStateError, KafkaError
from kclient.common.runtime import Clock
from kclient.common.types import Node
from kclient.protocol.message import Request, Response
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.quorum import VoteRequest

_OLDEST_FETCH = 15
"""First version with the replica state of a follower."""
_OLDEST_PRE_VOTE = 2


class NoRaftChannel:
    """Channel of the only voter, which sends no request.

    Attributes:
        unreachable: Ids of no nodes.
        foreign: Ids of no nodes.
    """

    unreachable: frozenset[int] = frozenset()
    foreign: frozenset[int] = frozenset()

    def forget_failures(self) -> None:
        """Do nothing: there are none."""

    def send(
        self, node: RaftNode, request: Request, _timeout_ms: float, _on_response: OnResponse
    ) -> None:
        """Refuse every request.

        Raises:
            IllegalStateError: The quorum wants to send a request.
        """
        raise IllegalStateError(f"{type(request).__name__} to {node}: there is no other voter")


class NetworkRaftChannel:
    """Channel whose responses are events of the quorum.

    Args:
        sender: Connections, polled by a thread of their own.
        events: Events of the quorum.
        clock: Clock.

    Attributes:
        unreachable: Ids of the nodes whose last request has failed.
        foreign: Ids of the nodes whose last response names another cluster; changed by events.
    """

    def __init__(self, sender: InterBrokerSender, events: EventQueue, clock: Clock) -> None:
        self._sender = sender
        self._events = events
        self._clock = clock
        self.unreachable: set[int] = set()
        self.foreign: set[int] = set()

    def send(
        self, node: RaftNode, request: Request, timeout_ms: float, on_response: OnResponse
    ) -> None:
        """Send a request; see `RaftChannel`."""
        self._sender.send(
            Node(node.id, node.host, node.port),
            SimpleBuilder(request, oldest=_oldest_version(request)),
            partial(self._received, node.id, on_response),
            timeout_ms,
        )
        self._sender.wakeup()

    def forget_failures(self) -> None:
        """Count only failures from now on: a leader sends requests to followers rarely."""
        self.unreachable.clear()

    def _received(self, node_id: int, on_response: OnResponse, outcome: Outcome) -> None:
        if isinstance(outcome, KafkaError):
            self.unreachable.add(node_id)
        else:
            self.unreachable.discard(node_id)
        self._events.submit(partial(self._respond, node_id, on_response, outcome))

    def _respond(self, node_id: int, on_response: OnResponse, outcome: Outcome) -> None:
        if isinstance(outcome, KafkaError) or not _is_foreign(outcome):
            self.foreign.discard(node_id)
        else:
            self.foreign.add(node_id)
            outcome = InconsistentClusterIdError(f"node {node_id} belongs to another cluster")
        on_response(outcome, self._clock.monotonic_ms())


def _is_foreign(response: Response) -> bool:
    return response_head(response).error_code == InconsistentClusterIdError.code


def _oldest_version(request: Request) -> int | None:
    if isinstance(request, FetchRequest):
        return _OLDEST_FETCH
    if isinstance(request, VoteRequest) and request.topics[0].partitions[0].pre_vote:
        return _OLDEST_PRE_VOTE
    return None
