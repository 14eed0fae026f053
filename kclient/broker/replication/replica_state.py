"""Progress of one replica, as its leader knows it."""

from dataclasses import dataclass

_NEVER = float("-inf")


@dataclass(slots=True)
class ReplicaState:
    """Progress of one replica, as the leader knows it (Kafka: Replica, ReplicaState).

    Attributes:
        log_end_offset: End offset of the replica's log, -1 if unknown. For the local replica, the
            end of the records that are flushed as flush.messages requires; for a follower, its
            fetch offset.
        log_start_offset: Start offset of its log, -1 if unknown.
        last_caught_up_ms: Latest monotonic time at which it had all records of the leader.
        last_fetch_ms: Monotonic time of its last fetch.
        last_fetch_leader_end_offset: End offset of the leader's log at its last fetch.
        broker_epoch: Broker epoch of its last fetch; -1 if that had none, None without a fetch.
    """

    log_end_offset: int = -1
    log_start_offset: int = -1
    last_caught_up_ms: float = _NEVER
    last_fetch_ms: float = _NEVER
    last_fetch_leader_end_offset: int = -1
    broker_epoch: int | None = None

    def reset(self, now_ms: float, *, in_sync: bool) -> None:
        """Forget the progress when a leader epoch begins.

        The follower may have truncated its log since its last fetch: it followed another leader, or
        will after its next fetch.

        Args:
            now_ms: Monotonic time.
            in_sync: Whether it is a member of the ISR, which it stays for a while without a fetch.
        """
        self.log_end_offset = self.log_start_offset = self.last_fetch_leader_end_offset = -1
        self.last_fetch_ms = _NEVER
        self.last_caught_up_ms = now_ms if in_sync else _NEVER
        self.broker_epoch = None

    def update(
        self,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
        now_ms: float,
    ) -> None:
        """Record a fetch.

        A follower of a busy leader never reaches its end. It counts as caught up at the time of its
        previous fetch if it now has what the leader had then.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.last_fetch_leader_end_offset = max(
            leader_end_offset, self.last_fetch_leader_end_offset
        )
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: float, lag_time_max_ms: float) -> bool:
        """Return whether it has all records, or had them within replica.lag.time.max.ms."""
        if self.log_end_offset == leader_end_offset:
            return True
        return now_ms - self.last_caught_up_ms <= lag_time_max_ms
