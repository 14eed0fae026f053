"""Results of calls for several items: values, errors, and errors that are not looked at."""

import gc
import warnings

import pytest

from kclient.admin.results import Outcomes, Results, one_by_one
from kclient.common.broker_errors import GroupNotEmptyError, TopicExistsError
from kclient.common.errors import BootstrapError, ProtocolError
from kclient.common.waiting import Steps, run_steps
from tests.support.virtual.virtual_home import VirtualHome


def mixed() -> Results[str, int]:
    outcomes: Outcomes[str, int] = {
        "a": 1,
        "b": TopicExistsError("topic 'b': it exists"),
        "c": 3,
        "d": GroupNotEmptyError("topic 'd': used"),
    }
    return Results("create_topics", outcomes)


def test_each_item_has_its_value_or_raises_its_error() -> None:
    results = mixed()
    assert (list(results), len(results)) == (["a", "b", "c", "d"], 4)
    assert (results["a"], results["c"]) == (1, 3)
    assert "b" in results
    assert "x" not in results
    with pytest.raises(TopicExistsError, match="topic 'b'"):
        _ = results["b"]
    with pytest.raises(KeyError, match="x"):
        _ = results["x"]
    assert {item: type(error) for item, error in results.errors.items()} == {
        "b": TopicExistsError,
        "d": GroupNotEmptyError,
    }


def test_first_error_is_raised_with_notes_of_the_others() -> None:
    results = mixed()
    for _ in range(2):
        with pytest.raises(TopicExistsError, match="topic 'b'") as caught:
            results.raise_for_errors()
        assert caught.value.__notes__ == ["also failed: topic 'd': used"]


def test_results_without_errors_are_returned() -> None:
    results = Results("create_topics", {"a": 1, "b": 2})
    assert results.raise_for_errors() is results
    assert results.errors == {}
    assert results == {"a": 1, "b": 2}


def test_item_without_outcome_has_an_error() -> None:
    results = Results("delete_topics", {"b": None, "other": None}, ["a", "b"])
    assert (list(results), results["b"]) == (["a", "b"], None)
    with pytest.raises(ProtocolError, match="delete_topics: a is missing in the response"):
        results.raise_for_errors()


def unseen_errors(results: list[Results[str, int]]) -> list[str]:
    """Return the warnings about errors that were not looked at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results.clear()
        gc.collect()
    assert {warning.category for warning in caught} <= {RuntimeWarning}
    return [str(warning.message) for warning in caught]


def test_errors_that_were_not_looked_at_are_reported() -> None:
    results = [mixed()]
    assert results[0]["a"] == 1
    (warning,) = unseen_errors(results)
    assert warning == (
        "create_topics: the program did not look at 2 errors, as by raise_for_errors(): "
        "topic 'b': it exists; topic 'd': used"
    )


def test_error_that_was_raised_counts_as_looked_at() -> None:
    results = [mixed()]
    with pytest.raises(TopicExistsError):
        _ = results[0]["b"]
    (warning,) = unseen_errors(results)
    assert "1 errors" in warning
    assert "topic 'b'" not in warning


def test_errors_that_were_listed_count_as_looked_at() -> None:
    results = [mixed()]
    assert len(results[0].errors) == 2
    assert unseen_errors(results) == []


def asked(item: str) -> Steps[int]:
    yield from ()
    if item == "lost":
        raise BootstrapError("no broker")
    if item == "used":
        raise GroupNotEmptyError("used")
    return len(item)


def test_items_that_are_asked_for_one_by_one() -> None:
    clock = VirtualHome().clock
    outcomes = run_steps(one_by_one(["used", "abc"], asked), clock)
    assert isinstance(outcomes["used"], GroupNotEmptyError)
    assert outcomes["abc"] == 3
    with pytest.raises(BootstrapError):
        run_steps(one_by_one(["abc", "lost"], asked), clock)
