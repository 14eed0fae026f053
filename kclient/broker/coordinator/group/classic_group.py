"""The state of one classic group (Kafka: ClassicGroup)."""

from collections import Counter
from collections.abc import Sequence

from kclient.broker.coordinator.group.group_member import GroupMember
from kclient.broker.coordinator.group.group_state import GroupState, check_transition
from kclient.protocol.messages.join_group import JoinGroupRequestProtocol


class ClassicGroup:
    """Members, generation and selected assignor of a group, without clock or I/O.

    Attributes:
        group_id: Name of the group.
        state: State of the group.
        state_since_ms: Wall-clock time of the last state change.
        generation: Number of completed rebalances.
        protocol_type: "consumer" for consumers; None before the first join.
        protocol: Assignor selected for this generation.
        leader: Member id of the leader.
        members: Members by id, in join order.
        static_members: Member id by group instance id.
        pending_members: Ids returned with MEMBER_ID_REQUIRED (KIP-394) that have not joined yet.
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
        """Whether the group has never had a generation and has no members or pending members."""
        empty = not self.members and not self.pending_members
        return self.state is GroupState.EMPTY and not self.generation and empty

    def transition_to(self, state: GroupState, now_wall_ms: int) -> None:
        """Change the state, as the table of transitions allows."""
        check_transition(self.group_id, self.state, state)
        self.state = state
        self.state_since_ms = now_wall_ms

    def add(self, member: GroupMember) -> None:
        """Add a member; the first one becomes the leader."""
        if not self.members:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_members.discard(member.member_id)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> GroupMember | None:
        """Remove a member; the next leader is the member that joined first."""
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
        """Replace the member id of a restarted static member."""
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
        """Return the assignors that every member supports."""
        offers = [set(member.protocol_names()) for member in self.members.values()]
        return set.intersection(*offers) if offers else set()

    def supports(self, protocol_type: str, protocols: Sequence[JoinGroupRequestProtocol]) -> bool:
        """Return whether a member with these assignors is compatible with the group."""
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
        """Return whether all members have joined the rebalance and none is pending."""
        return not self.pending_members and all(
            member.join_reply is not None for member in self.members.values()
        )

    def rebalance_timeout_ms(self) -> int:
        """Return the longest rebalance timeout among the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def begin_generation(self, now_wall_ms: int) -> None:
        """Start the next generation with the current members."""
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
        """Restore a generation from the log."""
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        if self.members:
            self.state = GroupState.STABLE
