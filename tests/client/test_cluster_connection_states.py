"""Back-offs, addresses and throttling of connections."""

import pytest

from kclient.client.cluster_connection_states import ClusterConnectionStates
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.common.errors import DisconnectedError, IllegalStateError
from kclient.common.runtime import Address

LOST = DisconnectedError("lost")


def never() -> float:
    return 0.0


@pytest.fixture
def states() -> ClusterConnectionStates:
    return ClusterConnectionStates(
        ExponentialBackoff(50, 1000, never), ExponentialBackoff(10_000, 30_000, never)
    )


def lose(states: ClusterConnectionStates, now_ms: float) -> float:
    states.connecting("1", now_ms, "h", 1)
    states.disconnected("1", now_ms, LOST)
    return states.connection_delay_ms("1", now_ms)


def test_backoff_doubles_up_to_maximum(states: ClusterConnectionStates) -> None:
    assert states.can_connect("1", 0)
    assert states.connection_delay_ms("1", 0) == 0
    waits = [lose(states, 0) for _ in range(7)]
    assert waits == [50, 100, 200, 400, 800, 1000, 1000]
    assert not states.can_connect("1", 999)
    assert states.can_connect("1", 1000)


@pytest.mark.fault("C12")
def test_only_ready_connection_resets_backoff(states: ClusterConnectionStates) -> None:
    lose(states, 0)
    states.connecting("1", 0, "h", 1)
    states.checking_api_versions("1")
    states.disconnected("1", 0, LOST)
    assert states.connection_delay_ms("1", 0) == 100
    states.connecting("1", 0, "h", 1)
    states.checking_api_versions("1")
    states.ready("1")
    assert states.is_ready("1", 0)
    assert states.error("1") is None
    states.disconnected("1", 0, LOST)
    assert states.connection_delay_ms("1", 0) == 50
    assert states.error("1") is LOST


@pytest.mark.fault("C3")
def test_setup_timeout_grows_with_failures(states: ClusterConnectionStates) -> None:
    limits = []
    for _ in range(4):
        states.connecting("1", 0, "h", 1)
        limits.append(states.next_connect_deadline_ms())
        assert states.overdue_connects(limits[-1] - 1) == []
        assert states.overdue_connects(limits[-1]) == ["1"]
        states.disconnected("1", 0, LOST)
    assert limits == [10_000, 20_000, 30_000, 30_000]
    assert states.next_connect_deadline_ms() == float("inf")


@pytest.mark.fault("C2")
def test_addresses_are_tried_in_turn_then_looked_up_again(states: ClusterConnectionStates) -> None:
    look_ups = []

    def connect() -> Address:
        address = states.connecting("1", 0, "h", 9).current_address()
        if address is not None:
            return address
        look_ups.append("h")
        return states.set_addresses("1", [("10.0.0.1", 9), ("10.0.0.2", 9)])

    taken = []
    for _ in range(3):
        taken.append(connect())
        states.disconnected("1", 0, LOST)
    assert taken == [("10.0.0.1", 9), ("10.0.0.2", 9), ("10.0.0.1", 9)]
    assert look_ups == ["h", "h"]
    connect()
    states.checking_api_versions("1")
    states.disconnected("1", 0, LOST)
    connect()
    assert look_ups == ["h", "h", "h"]


def test_moved_node_has_no_failures(states: ClusterConnectionStates) -> None:
    for _ in range(5):
        lose(states, 0)
    states.connecting("1", 0, "elsewhere", 1)
    states.disconnected("1", 0, LOST)
    assert states.connection_delay_ms("1", 0) == 50


def test_throttle_ends_after_its_time(states: ClusterConnectionStates) -> None:
    states.connecting("1", 0, "h", 1)
    states.checking_api_versions("1")
    states.ready("1")
    states.throttle("1", 100)
    states.throttle("1", 40)
    assert states.poll_delay_ms("1", 10) == 90
    assert not states.is_ready("1", 99)
    assert states.is_ready("1", 100)
    assert states.has_ready_nodes(100)
    assert states.poll_delay_ms("1", 100) == float("inf")


def test_unknown_node_is_neither_disconnected_nor_ready(states: ClusterConnectionStates) -> None:
    assert not states.is_disconnected("1")
    assert not states.is_ready("1", 0)
    with pytest.raises(IllegalStateError, match="no connection was ever opened"):
        states.ready("1")
