"""Outcomes of a call of the admin client for several items: a result or an error for each."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Self, TypeVar

from kclient.common.errors import BootstrapError, ClosedError, KafkaError, ProtocolError
from kclient.common.waiting import Steps

K = TypeVar("K")
V = TypeVar("V")

Outcomes = dict[K, V | KafkaError]
"""Value or error by item."""

_OF_THE_CALL = (BootstrapError, ClosedError)  # errors that every item would have


class Results(Mapping[K, V]):
    """Outcomes of a call by item, such as topics by name (Kafka: CreateTopicsResult and others).

    ``results[item]`` is the result of an item, or raises its error. Errors that the program does
    not look at before the object is gone are reported by a `RuntimeWarning`.
    """

    def __init__(
        self, call: str, outcomes: Mapping[K, V | KafkaError], items: Iterable[K] | None = None
    ) -> None:
        """Create results.

        Args:
            call: Name of the call, for messages.
            outcomes: Result or error by item, in the order of the items.
            items: Items that were asked for. One without outcome gets an error, and others are
                dropped; None for those that have an outcome.
        """
        self._call = call
        self._outcomes = outcomes
        if items is not None:
            self._outcomes = {
                item: outcomes[item] if item in outcomes else _missing(call, item) for item in items
            }
        self._unseen = {
            item: outcome
            for item, outcome in self._outcomes.items()
            if isinstance(outcome, KafkaError)
        }

    @property
    def errors(self) -> dict[K, KafkaError]:
        """Errors by item, empty if every item succeeded."""
        self._unseen = {}
        return {
            item: outcome
            for item, outcome in self._outcomes.items()
            if isinstance(outcome, KafkaError)
        }

    def raise_for_errors(self) -> Self:
        """Return these results if every item succeeded.

        Raises:
            KafkaError: The error of the first item that failed, with a note for each other error.
        """
        errors = self.errors
        if not errors:
            return self
        first, *others = errors.values()
        for other in others:
            note = f"also failed: {other}"
            if note not in getattr(first, "__notes__", ()):
                first.add_note(note)
        raise first

    def __getitem__(self, item: K) -> V:
        outcome = self._outcomes[item]
        if isinstance(outcome, KafkaError):
            self._unseen.pop(item, None)
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __contains__(self, item: object) -> bool:
        return item in self._outcomes

    def __repr__(self) -> str:
        return f"<Results of {self._call}: {self._outcomes!r}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit modules may be gone, hence the argument `warn`.
        unseen = getattr(self, "_unseen", None)
        if unseen:
            listed = "; ".join(map(str, unseen.values()))
            warn(
                f"{self._call}: the program did not look at {len(unseen)} errors, as by "
                f"raise_for_errors(): {listed:.1000}",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )


def _missing(call: str, item: object) -> ProtocolError:
    return ProtocolError(f"{call}: {item} is missing in the response")


def raising_if_single(
    steps: Steps[Results[K, V]], given: object, kind: type | tuple[type, ...]
) -> Steps[Results[K, V]]:
    """Return the results of a call; for a single item outside a list, raise its error.

    Args:
        steps: The call.
        given: Argument of the call with its items.
        kind: Class of an item, or classes.
    """
    results = yield from steps
    return results.raise_for_errors() if isinstance(given, kind) else results


def one_by_one(items: Iterable[K], ask: Callable[[K], Steps[V]]) -> Steps[Outcomes[K, V]]:
    """Ask for one item after the other; return the value or the error of each.

    Raises:
        BootstrapError: No broker can be reached.
        ClosedError: The client is closed.
    """
    outcomes: Outcomes[K, V] = {}
    for item in items:
        try:
            outcomes[item] = yield from ask(item)
        except _OF_THE_CALL:
            raise
        except KafkaError as error:
            outcomes[item] = error
    return outcomes
