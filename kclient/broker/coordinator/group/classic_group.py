"""The state of one classic group (Kafka: ClassicGroup)."""

from collections import Counter
from collections.abc import Sequence

from kclient.broker.coordinator.group.group_member import GroupMember
from kclient.broker.coordinator.group.group_state import GroupState, check_transition
from kclient.protocol.messages.join_group import JoinGroupRequestProtocol


class ClassicGroup:
    """Members, generation and chosen assignor of a group; no clock, no I/O, no replies.

    Attributes:
        group_id: Name of the group.
        state: Where the group stands.
        state_since_ms: Wall-clock time the state began.
        generation: Counts completed rebalances; 0 before the first.
        protocol_type: "consumer" for consumers; None until someone joined.
        protocol: Assignor chosen for this generation.
        leader: Member id of the one that assigns.
        members: Members by id, in the order they came.
        static_members: Member id by group instance id.
        pending_members: Ids handed out (KIP-394) to members that have not come back yet.
    """

    def __init__(self, group_id: str, now_wall_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = now_wall_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, GroupMember] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: set[str] = set()
        self.has_new_member = False

    @property
    def is_unused(self) -> bool:
        """Whether nobody ever was in it or is expected, so that nothing is lost with it."""
        nobody = not self.members and not self.pending_members
        return self.state is GroupState.EMPTY and not self.generation and nobody

    def transition_to(self, state: GroupState, now_wall_ms: int) -> None:
        """Move to another state, which the table must allow."""
        check_transition(self.group_id, self.state, state)
        self.state = state
        self.state_since_ms = now_wall_ms

    def add(self, member: GroupMember) -> None:
        """Take a member in; the first one leads."""
        if not self.members:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> GroupMember | None:
        """Take a member out; the oldest of the rest leads if the leader went."""
        self.pending_members.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return None
        if (
            member.group_instance_id is not None
            and self.static_members.get(member.group_instance_id) == member_id
        ):
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old_id: str, new_id: str) -> GroupMember:
        """Give a restarted static member its new id in the old one's place."""
        member = self.members[old_id]
        member.member_id = new_id
        self.members = {
            (new_id if key == old_id else key): value for key, value in self.members.items()
        }
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        return member

    def common_protocols(self) -> set[str]:
        """Return the assignors that every member offers."""
        offers = [set(member.protocol_names()) for member in self.members.values()]
        return set.intersection(*offers) if offers else set()

    def supports(self, protocol_type: str, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        """Return whether a member with these assignors fits into the group."""
        if not protocol_type or not protocols:
            return False
        if not self.members:
            return True
        if self.protocol_type != protocol_type:
            return False
        return bool(self.common_protocols() & {protocol.name for protocol in protocols})

    def select_protocol(self) -> str:
        """Return the assignor with the most votes; each member votes for its first common one."""
        common = self.common_protocols()
        votes: Counter[str] = Counter()
        for member in self.members.values():
            votes[next(name for name in member.protocol_names() if name in common)] += 1
        return votes.most_common(1)[0][0]

    def all_joined(self) -> bool:
        """Return whether nobody is left to wait for in a rebalance."""
        return not self.pending_members and all(
            member.join_reply is not None for member in self.members.values()
        )

    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout among the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, now_wall_ms: int) -> None:
        """Start the next generation with the members that are here."""
        self.generation += 1
        self.has_new_member = False
        if not self.members:
            self.protocol = None
            self.leader = None
            self.transition_to(GroupState.EMPTY, now_wall_ms)
            return
        self.protocol = self.select_protocol()
        self.transition_to(GroupState.COMPLETING_REBALANCE, now_wall_ms)

    def restore(self, generation: int, protocol: str | None, leader: str | None) -> None:
        """Take up a generation that the log has kept."""
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        if self.members:
            self.state = GroupState.STABLE
