"""Settings of the quorum."""

from kclient.broker.raft.quorum_config import DEFAULT_QUORUM_CONFIG


def test_times_that_follow_from_the_fetch_timeout() -> None:
    config = DEFAULT_QUORUM_CONFIG
    assert config.begin_quorum_epoch_period_ms == 1_000
    assert config.check_quorum_timeout_ms == 3_000
    assert config.update_voter_period_ms == 2_000
