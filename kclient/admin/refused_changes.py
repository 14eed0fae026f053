"""Changes that were refused for a time are sent again: by a quota, or without a controller."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from kclient.admin.requester import Requester
from kclient.admin.results import Outcomes, Results
from kclient.common.broker_errors import NotControllerError, ThrottlingQuotaExceededError
from kclient.common.errors import KafkaError, KafkaTimeoutError
from kclient.common.waiting import Steps

K = TypeVar("K")
V = TypeVar("V")


def send_until_accepted(
    requester: Requester,
    call: str,
    items: Iterable[K],
    send: Callable[[list[K]], Steps[Outcomes[K, V]]],
    *,
    retries_quota: bool,
) -> Steps[Results[K, V]]:
    """Send items, and those that were refused for a time again, until the deadline.

    They are refused while no controller is active, and by the quota ``controller_mutation_rate``
    (KIP-599). The connection is not used during the throttle time of a response, so that it passes
    first.

    Args:
        requester: Requester of the call.
        call: Name of the call, for messages.
        items: Such as the names of topics to create.
        send: Sends items in one request.
        retries_quota: Whether to send items again that the quota refused.

    Returns:
        The value or the error of each item. Items that are refused until the deadline have the
        error of the refusal, with a note about the last attempt.

    Raises:
        KafkaError: As `send`, the first time.
    """
    outcomes: Outcomes[K, V] = {}
    wanted = list(items)
    waiting = list(wanted)
    refusals = (
        (NotControllerError, ThrottlingQuotaExceededError)
        if retries_quota
        else (NotControllerError,)
    )

    def attempt() -> Steps[None]:
        outcomes.update((yield from send(waiting)))
        waiting[:] = [each for each in waiting if isinstance(outcomes.get(each), refusals)]
        for each in waiting:
            refusal = outcomes[each]
            if isinstance(refusal, KafkaError):
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
    """Note in the error of a refusal why there was no further attempt, or no outcome of it."""
    if isinstance(outcome, KafkaError):
        outcome.add_note(text)
