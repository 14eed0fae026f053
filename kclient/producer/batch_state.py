"""States of a batch, and whether earlier attempts may have written it, as tables."""

from enum import Enum

from kclient.producer.append_outcome import AppendOutcome


class BatchState(Enum):
    """State of a batch."""

    __hash__ = object.__hash__  # a third of the time of Enum's; the tables are read for each batch

    NEW = "nothing waits for an outcome yet"
    QUEUED = "in its queue, or drained from it for the next request"
    IN_FLIGHT = "in a request"
    RETURNED = "the request ended with an error"
    FAILED_IN_FLIGHT = "failed; the socket may still read its memory"
    SPLIT = "replaced by its parts"
    DONE = "acknowledged or failed, and in no request"


class BatchEvent(Enum):
    """Event that changes the state of a batch."""

    __hash__ = object.__hash__

    REGISTERED = "the accumulator waits for its outcome"
    SENT = "a request with the batch was sent"
    ACKNOWLEDGED = "the log has the batch"
    RETURNED = "the request ended with an error"
    REQUEUED = "the batch waits for a retry"
    SPLIT = "the parts of the batch are queued"
    FAILED = "the batch failed"


_S = BatchState
_E = BatchEvent

TRANSITIONS: dict[tuple[BatchState, BatchEvent], BatchState] = {
    (_S.NEW, _E.REGISTERED): _S.QUEUED,
    (_S.NEW, _E.FAILED): _S.DONE,  # a signal handler raised while it was registered
    (_S.QUEUED, _E.SENT): _S.IN_FLIGHT,
    (_S.QUEUED, _E.FAILED): _S.DONE,
    (_S.IN_FLIGHT, _E.ACKNOWLEDGED): _S.DONE,
    (_S.IN_FLIGHT, _E.RETURNED): _S.RETURNED,
    (_S.IN_FLIGHT, _E.FAILED): _S.FAILED_IN_FLIGHT,
    (_S.RETURNED, _E.REQUEUED): _S.QUEUED,
    (_S.RETURNED, _E.SPLIT): _S.SPLIT,
    (_S.RETURNED, _E.FAILED): _S.DONE,
    (_S.FAILED_IN_FLIGHT, _E.ACKNOWLEDGED): _S.DONE,
    (_S.FAILED_IN_FLIGHT, _E.RETURNED): _S.DONE,
}


class EarlierAttempts(Enum):
    """What is known of the requests that have ended."""

    NOT_WRITTEN = "none wrote the batch"
    UNKNOWN = "the log may hold the batch"
    DENIED = "unknown, until a broker returned OUT_OF_ORDER_SEQUENCE_NUMBER"
    UNKNOWN_WHOLE = "part of a batch that the log may hold; the broker cannot deduplicate parts"


_A = EarlierAttempts

ATTEMPT_OUTCOMES: dict[tuple[EarlierAttempts, AppendOutcome | BatchEvent], EarlierAttempts] = {
    (_A.NOT_WRITTEN, AppendOutcome.UNKNOWN): _A.UNKNOWN,
    (_A.UNKNOWN, AppendOutcome.NEVER_WRITTEN): _A.DENIED,
    (_A.DENIED, AppendOutcome.UNKNOWN): _A.UNKNOWN,
    (_A.UNKNOWN, BatchEvent.SPLIT): _A.UNKNOWN_WHOLE,
}


def attempts_after(known: EarlierAttempts, event: AppendOutcome | BatchEvent) -> EarlierAttempts:
    """Return what is known after an event; one that is not in the table changes nothing."""
    return ATTEMPT_OUTCOMES.get((known, event), known)
