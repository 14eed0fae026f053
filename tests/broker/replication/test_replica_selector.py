"""Selection of the replica that a consumer reads, by racks."""

import pytest

from kclient.broker.replication.replica_selector import RackAwareReplicaSelector, ReplicaView

LEADER = ReplicaView(1, "a", 100, 0.0, True)
NEAR = ReplicaView(2, "b", 90, 5.0, False)
NEARER = ReplicaView(3, "b", 90, 4.0, False)
AHEAD = ReplicaView(4, "b", 95, 9.0, False)
FAR = ReplicaView(5, None, 100, 0.0, False)


@pytest.mark.parametrize(
    ("rack", "replicas", "expected"),
    [
        ("a", [LEADER, NEAR], None),
        ("b", [LEADER, FAR], None),
        ("b", [LEADER, NEAR, FAR], NEAR),
        ("b", [LEADER, NEAR, NEARER], NEARER),
        ("b", [LEADER, NEAR, NEARER, AHEAD], AHEAD),
    ],
)
def test_most_caught_up_replica_of_the_rack_is_selected(
    rack: str, replicas: list[ReplicaView], expected: ReplicaView | None
) -> None:
    assert RackAwareReplicaSelector().select(rack, replicas) == expected
