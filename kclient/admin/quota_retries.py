"""Items that the quota of changes refused are sent again (KIP-599)."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kclient.admin.requester import Requester
from kclient.admin.results import Outcomes, Results
from kclient.common.broker_errors import ThrottlingQuotaExceededError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.waiting import Steps

K = TypeVar("K")
V = TypeVar("V")


def send_until_quota_allows(
    requester: Requester,
    call: str,
    items: Iterable[K],
    send: Callable[[list[K]], Steps[Outcomes[K, V]]],
    *,
    retry: bool,
) -> Steps[Results[K, V]]:
    """Send items, and those that ``controller_mutation_rate`` refuses again until the deadline.

    The connection is not used during the throttle time of a response, so that it passes first.

    Args:
        requester: Requester of the call.
        call: Name of the call, for messages.
        items: Such as the names of topics to create.
        send: Sends items in one request.
        retry: Whether to send items again; else they have the error of the quota.

    Returns:
        The value or the error of each item. Items that the quota refuses until the deadline have
        the error of the quota, with a note about the last attempt.

    Raises:
        KafkaError: As `send`, the first time.
    """
    outcomes: Outcomes[K, V] = {}
    wanted = list(items)
    waiting = list(wanted)

    def attempt() -> Steps[None]:
        outcomes.update((yield from send(waiting)))
        waiting[:] = [each for each in waiting if _is_refused(outcomes.get(each))]
        for each in waiting:
            refusal = outcomes[each]
            if retry and isinstance(refusal, KafkaError):
                raise refusal

    try:
        yield from requester.retried(attempt)
    except KafkaError as error:
        if not outcomes:
            raise
        if isinstance(error, KafkaTimeoutError):
            for each in waiting:
                _note(outcomes[each], f"the last attempt: {error}")
        else:
            outcomes.update(dict.fromkeys(waiting, error))
    return Results(call, outcomes, wanted)


def _note(outcome: object, text: str) -> None:
    """Note in the error of the quota why there was no further attempt, or no outcome of it."""
    if isinstance(outcome, KafkaError):
        outcome.add_note(text)


def _is_refused(outcome: object) -> bool:
    return isinstance(outcome, ThrottlingQuotaExceededError)
