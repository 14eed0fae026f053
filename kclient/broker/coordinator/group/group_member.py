"""One member of a classic group (Kafka: ClassicGroupMember)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kclient.protocol.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from kclient.protocol.messages.sync_group import SyncGroupResponse

JoinReply = Callable[[JoinGroupResponse], None]
SyncReply = Callable[[SyncGroupResponse], None]


@dataclass(slots=True)
class GroupMember:
    """What the coordinator knows of a member.

    Attributes:
        member_id: Id the coordinator gave out.
        group_instance_id: Id the user gave a static member, or None (KIP-345).
        client_id: Client id of the request that joined.
        client_host: Address it came from.
        rebalance_timeout_ms: How long a rebalance waits for this member.
        session_timeout_ms: How long it may stay silent.
        protocols: Assignors it offers with its metadata for each, in order of preference.
        assignment: What the leader gave it in this generation.
        join_reply: Where to answer its JoinGroup, while one is waiting.
        sync_reply: Where to answer its SyncGroup, while one is waiting.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Sequence[JoinGroupRequestProtocol]
    assignment: bytes = b""
    join_reply: JoinReply | None = field(default=None, repr=False)
    sync_reply: SyncReply | None = field(default=None, repr=False)

    @property
    def is_waiting(self) -> bool:
        """Whether a request of this member waits for an answer: it is alive by that alone."""
        return self.join_reply is not None or self.sync_reply is not None

    def protocol_names(self) -> list[str]:
        """Return the names of the assignors it offers."""
        return [protocol.name for protocol in self.protocols]

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return its metadata for one assignor; empty where it does not offer it."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    def matches(self, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        """Return whether a new JoinGroup offers the same assignors with the same metadata."""
        return [(p.name, p.metadata) for p in self.protocols] == [
            (p.name, p.metadata) for p in protocols
        ]
