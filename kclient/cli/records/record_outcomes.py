"""Counts and errors of the records that a command sends."""

import sys
from collections.abc import Callable

from kclient.producer.delivery_future import DeliveryFuture

_SHOWN_FAILURES = 10
_FIRST_LOOK = 10_000
"""Records without a known outcome at which the outcomes are looked at."""


class RecordOutcomes:
    """Counts lines and the outcomes of their records.

    Futures are kept, since a callback for each record would take more time than all the rest.

    Attributes:
        read: Lines or files of the input.
        empty: Lines without a record.
        sent: Acknowledged records.
        pending: Numbers and futures of records whose outcome was not looked at.
    """

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self.read = self.empty = self.sent = 0
        self.pending: list[tuple[int, DeliveryFuture]] = []
        self._name_of = name_of
        self._most_pending = _FIRST_LOOK
        self._failures: list[tuple[int, str]] = []

    @property
    def failed(self) -> int:
        """Number of records that were not acknowledged."""
        return self.read - self.empty - self.sent

    def fail(self, number: int, error: BaseException) -> None:
        """Keep an error if it is one of the first."""
        if len(self._failures) < _SHOWN_FAILURES:
            self._failures.append((number, str(error)))

    def settle_many(self) -> None:
        """Look at outcomes if there are many; each is looked at about twice."""
        if len(self.pending) >= self._most_pending:
            self.settle()
            self._most_pending = max(_FIRST_LOOK, 2 * len(self.pending))

    def settle(self) -> None:
        """Look at the outcome of every record that has one."""
        unknown = []
        for number, future in self.pending:
            if not future.done():
                unknown.append((number, future))
                continue
            error = future.exception(0)
            if error is None:
                self.sent += 1
            else:
                self.fail(number, error)
        self.pending = unknown

    def report(self, *, is_quiet: bool) -> None:
        """Print the first failures and the counts."""
        self.settle()
        for number, text in sorted(self._failures):
            print(f"{self._name_of(number)}: {text}", file=sys.stderr)
        if self.failed > len(self._failures) > 0:
            print(f"and {self.failed - len(self._failures)} more", file=sys.stderr)
        if self.failed or not is_quiet:
            print(f"sent {self.sent}, failed {self.failed}", file=sys.stderr)
