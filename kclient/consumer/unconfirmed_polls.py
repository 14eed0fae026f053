"""Polls whose records the application may not have received."""

from kclient.consumer.consumer_records import Receipt
from kclient.consumer.fetch_collector import CollectedRange, FetchCollector

# Results that are held and not used. An application that holds more of them has received them.
_MOST_HELD = 2


class UnconfirmedPolls:
    """Restores the positions before polls whose results were released without being used.

    The result of a cancelled ``asyncio.to_thread(consumer.poll)`` is released by the event loop,
    possibly after the next call of the consumer has begun. So earlier polls are remembered until
    their results are used or released.

    Attributes:
        last: Receipt of the last poll; None if it counts as received, or returned no records.
        held: Receipts of earlier polls whose results were held and not used when the next poll
            began, with the positions before them.
    """

    __slots__ = ("_collector", "held", "last")

    def __init__(self, collector: FetchCollector) -> None:
        self.last: Receipt | None = None
        self.held: list[tuple[Receipt, CollectedRange]] = []
        self._collector = collector

    def has_unread(self) -> bool:
        """Return whether results were not used yet."""
        last = self.last
        if last is not None and not last.is_read:
            return True
        return bool(self.held) and any(not receipt.is_read for receipt, _ in self.held)

    def undo_lost(self) -> None:
        """Reset the positions to before the polls whose results were lost."""
        if self.last is not None and self.last.is_lost():
            self.last = None
            self._collector.undo()
        lost = [entry for entry in self.held if entry[0].is_lost()]
        if lost:
            self.held = [entry for entry in self.held if entry not in lost]
            for _, before in reversed(lost):
                self._collector.restore(before)

    def begin_poll(self) -> None:
        """Confirm the last poll, but remember it if its result is held and was not used."""
        last, self.last = self.last, None
        if self.held:
            self.held = [entry for entry in self.held if not entry[0].is_read]
        if last is None or last.is_read:
            self._collector.confirm()
        else:
            self.held = [*self.held, (last, self._collector.take_range())][-_MOST_HELD:]

    def clear(self) -> None:
        """Count the records of all polls as received."""
        self.last = None
        self.held = []
