"""Progress of a replica: caught-up time, reset, broker epoch."""

from kclient.broker.replication.replica_state import ReplicaState

LAG_MS = 30.0


def test_fetch_at_the_end_of_the_leader_is_caught_up_then() -> None:
    state = ReplicaState()
    assert not state.is_caught_up(10, 0.0, LAG_MS)
    state.update(10, 0, 10, 7, 100.0)
    assert (state.last_caught_up_ms, state.broker_epoch, state.log_end_offset) == (100.0, 7, 10)
    assert state.is_caught_up(10, 1e9, LAG_MS)  # nothing was appended since
    assert state.is_caught_up(11, 130.0, LAG_MS)
    assert not state.is_caught_up(11, 131.0, LAG_MS)


def test_follower_of_a_busy_leader_was_caught_up_at_its_previous_fetch() -> None:
    state = ReplicaState()
    state.update(5, 0, 10, -1, 100.0)
    assert not state.is_caught_up(20, 101.0, LAG_MS)
    state.update(10, 0, 20, -1, 110.0)
    assert state.last_caught_up_ms == 100.0
    state.update(19, 0, 30, -1, 120.0)  # less than the leader had at the fetch before
    assert state.last_caught_up_ms == 100.0


def test_new_epoch_forgets_all_but_that_a_member_is_in_sync() -> None:
    for in_sync in (True, False):
        state = ReplicaState()
        state.update(10, 3, 10, 7, 100.0)
        state.reset(200.0, in_sync=in_sync)
        assert (state.log_end_offset, state.log_start_offset, state.broker_epoch) == (-1, -1, None)
        assert state.is_caught_up(10, 220.0, LAG_MS) is in_sync
        state.update(9, 3, 10, 7, 230.0)
        assert state.is_caught_up(10, 240.0, LAG_MS) is False
