"""Settings of the quorum; Kafka's names and defaults (Kafka: QuorumConfig)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """Times in milliseconds and sizes in bytes.

    Attributes:
        election_timeout_ms: ``controller.quorum.election.timeout.ms``; a random time up to as much
            again is added.
        fetch_timeout_ms: ``controller.quorum.fetch.timeout.ms``: a follower without a successful
            fetch for this time asks for an election.
        election_backoff_max_ms: ``controller.quorum.election.backoff.max.ms``: upper bound of the
            delay of the successors of a leader that resigns.
        request_timeout_ms: ``controller.quorum.request.timeout.ms``.
        retry_backoff_ms: ``controller.quorum.retry.backoff.ms``.
        append_linger_ms: ``controller.quorum.append.linger.ms``; 0 with a single voter.
        fetch_max_bytes: ``controller.quorum.fetch.max.bytes``.
        fetch_snapshot_max_bytes: ``controller.quorum.fetch.snapshot.max.bytes``.
        fetch_max_wait_ms: Time that a leader parks a fetch without new records.
        auto_join: ``controller.quorum.auto.join.enable``.
        max_buffered_bytes: Bytes of appended and not yet written records of a leader.
        observer_timeout_ms: Time after which a leader forgets an observer that does not fetch.
        clean_interval_ms: Interval of the removal of old records and snapshots.
    """

    election_timeout_ms: float = 1_000
    fetch_timeout_ms: float = 2_000
    election_backoff_max_ms: float = 1_000
    request_timeout_ms: float = 2_000
    retry_backoff_ms: float = 20
    append_linger_ms: float = 25
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    fetch_max_wait_ms: int = 500
    auto_join: bool = False
    max_buffered_bytes: int = 10 * 8 * 1024 * 1024
    observer_timeout_ms: float = 300_000
    clean_interval_ms: float = 60_000

    @property
    def begin_quorum_epoch_period_ms(self) -> float:
        """Time after which a voter that has not fetched gets a BeginQuorumEpoch."""
        return self.fetch_timeout_ms / 2

    @property
    def check_quorum_timeout_ms(self) -> float:
        """Time without fetches from a majority after which a leader resigns."""
        return self.fetch_timeout_ms * 1.5

    @property
    def update_voter_period_ms(self) -> float:
        """Interval of the check whether the own voter entry must be updated, or added."""
        return self.fetch_timeout_ms


DEFAULT_QUORUM_CONFIG = QuorumConfig()
