"""Checks of arguments for transactions, made before any request.

Each returns what it checked, or raises `InvalidTypeError` or `InvalidArgumentError` with the
expected form.
"""

from collections.abc import Iterable

from kclient.admin.arguments import check_int, check_list
from kclient.admin.cluster_arguments import check_text
from kclient.admin.transaction_types import TransactionState
from kclient.common.config_def import describe
from kclient.common.errors import InvalidArgumentError
from kclient.common.types import check_topic_name

MAX_LONG = 2**63 - 1
"""Maximum of an int64, as of producer ids and durations."""


def check_transactional_ids(transactional_ids: str | Iterable[str]) -> list[str]:
    """Return transactional ids, each once; a single one becomes a list of one."""
    listed = check_list("transactional_ids", transactional_ids, str)
    for each in listed:
        check_text("transactional_ids", each)
    return list(dict.fromkeys(listed))


def check_transaction_states(
    states: TransactionState | str | Iterable[TransactionState | str],
) -> list[str]:
    """Return names of states that brokers know."""
    names: list[str] = []
    for state in check_list("states", states, str):
        check_text("states", state)
        if TransactionState(state) is TransactionState.UNKNOWN:
            known = ", ".join(each for each in TransactionState if each != "Unknown")
            raise InvalidArgumentError(f"states: got {describe(str(state))}, expected {known}")
        names.append(str(state))
    return names


def check_producer_ids(producer_ids: int | Iterable[int]) -> list[int]:
    """Return producer ids; a single one becomes a list of one."""
    listed = check_list("producer_ids", producer_ids, int)
    for each in listed:
        check_int("producer_ids", each, 0, high=MAX_LONG)
    return listed


def check_topics(topics: str | Iterable[str]) -> list[str]:
    """Return valid names of topics; a single one becomes a list of one."""
    return [check_topic_name(name) for name in check_list("topics", topics, str)]
