"""Verification of transactions before the first append to a log (KIP-890)."""

from dataclasses import dataclass


class VerificationGuard:
    """Identity of one verification (Kafka: VerificationGuard).

    A request that was delayed beyond the end of its transaction has another guard than one that
    verifies the next transaction.
    """

    __slots__ = ()


OPEN_TRANSACTION = VerificationGuard()
"""Guard of an append to a transaction that must be open already (Kafka: SENTINEL)."""


@dataclass(slots=True)
class VerificationStateEntry:
    """Verification of a producer in progress (Kafka: VerificationStateEntry).

    Attributes:
        guard: Its identity.
        epoch: Epoch of the producer.
        lowest_sequence: Lowest sequence of the requests that wait for it.
        supports_epoch_bump: Whether each end of a transaction of this producer raises the epoch.
        started_ms: Monotonic time of its begin.
    """

    guard: VerificationGuard
    epoch: int
    lowest_sequence: int
    supports_epoch_bump: bool
    started_ms: float

    def add(self, epoch: int, sequence: int) -> None:
        """Add a request that waits for it."""
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class VerificationStates:
    """Verifications in progress of one log, by producer id.

    Args:
        max_ids: Maximum number; the oldest one is removed beyond it, and its append is refused.
    """

    def __init__(self, max_ids: int) -> None:
        self._max_ids = max_ids
        self._entries: dict[int, VerificationStateEntry] = {}

    def find(self, producer_id: int) -> VerificationStateEntry | None:
        """Return the verification of a producer, or None."""
        return self._entries.get(producer_id)

    def begin(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        now_ms: float,
        *,
        supports_epoch_bump: bool,
    ) -> VerificationGuard:
        """Begin a verification, or join that of the producer; return its guard."""
        entry = self._entries.get(producer_id)
        if entry is not None:
            entry.add(epoch, sequence)
            return entry.guard
        if len(self._entries) >= self._max_ids:
            del self._entries[next(iter(self._entries))]
        guard = VerificationGuard()
        self._entries[producer_id] = VerificationStateEntry(
            guard, epoch, sequence, supports_epoch_bump, now_ms
        )
        return guard

    def end(self, producer_id: int, *, marker_epoch: int | None) -> None:
        """End the verification of a producer after an append to its transaction.

        A marker of the epoch that is verified ends the transaction before it, since the end has
        raised the epoch: the verification continues.

        Args:
            producer_id: The producer.
            marker_epoch: Epoch of the marker; None if records were appended.
        """
        entry = self._entries.get(producer_id)
        if entry is not None and not (entry.supports_epoch_bump and entry.epoch == marker_epoch):
            del self._entries[producer_id]

    def remove_expired(self, latest_ms: float) -> None:
        """Remove the verifications that began by a time."""
        for producer_id, entry in list(self._entries.items()):
            if entry.started_ms > latest_ms:
                break  # they are in order of their begin
            del self._entries[producer_id]
