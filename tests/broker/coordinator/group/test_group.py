"""Groups of any protocol, as ListGroups reports them."""

from kclient.broker.coordinator.group.group import Group
from kclient.protocol.messages.groups import DescribedGroup


class OneState(Group):
    """A group of a protocol that only this test has."""

    TYPE = "test"
    state_name = "Assigning"
    is_empty = False

    def subscribes_to(self, topic: str) -> bool:
        return bool(topic)

    def describe(self) -> DescribedGroup:
        return DescribedGroup(group_id=self.group_id)


def test_listed_group_has_state_and_type_of_its_protocol() -> None:
    group = OneState("g", 77)
    group.protocol_type = "connect"
    listed = group.listed()
    assert (listed.group_id, listed.protocol_type) == ("g", "connect")
    assert (listed.group_state, listed.group_type) == ("Assigning", "test")
    assert group.state_since_ms == 77


def test_group_without_members_so_far_has_no_protocol_type() -> None:
    assert OneState("g", 0).listed().protocol_type == ""
