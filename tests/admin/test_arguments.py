"""Checks of arguments: each error names the argument, what it got and what it expected."""

from collections.abc import Callable
from typing import Any

import pytest

from kclient.admin.arguments import (
    check_group_id,
    check_int,
    check_list,
    check_names,
    check_new_topic,
    check_partition,
    check_total_counts,
)
from kclient.admin.new_topic import NewTopic
from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import TopicPartition


def test_single_item_becomes_a_list_of_one() -> None:
    place = TopicPartition("t", 0)
    assert check_list("names", "a", str) == ["a"]
    assert check_list("partitions", place, TopicPartition) == [place]  # a tuple, but no list of it


@pytest.mark.parametrize("given", [["a", "b"], ("a", "b"), iter("ab"), dict.fromkeys("ab").keys()])
def test_iterables_become_lists(given: Any) -> None:
    assert check_list("names", given, str) == ["a", "b"]


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("check", "kind", "text"),
    [
        (lambda: check_list("names", [], str), InvalidArgumentError, "names: got [] (list), exp"),
        (lambda: check_list("names", {"a": 1}, str), InvalidTypeError, "expected a list"),
        (lambda: check_list("topics", "a", NewTopic), InvalidTypeError, "topics: got 'a' (str)"),
        (lambda: check_list("names", 5, str), InvalidTypeError, "names: got 5 (int)"),
        (lambda: check_group_id(""), InvalidArgumentError, "expected a non-empty str"),
        (lambda: check_group_id(b"g"), InvalidTypeError, "group_id: got b'g' (bytes)"),
        (lambda: check_int("n", True, 0), InvalidTypeError, "n: got True (bool)"),
        (lambda: check_int("n", 1.0, 0), InvalidTypeError, "expected an int >= 0"),
        (lambda: check_int("n", -1, 0), InvalidArgumentError, f"expected 0 to {MOST}"),
        (lambda: check_int("n", MOST + 1, 0), InvalidArgumentError, f"expected 0 to {MOST}"),
        (lambda: check_partition(("t",)), InvalidTypeError, "expected a TopicPartition"),
        (lambda: check_partition(("t", -1)), InvalidArgumentError, "partition of 't': got -1"),
        (lambda: check_partition(("a b", 0)), InvalidArgumentError, "topic: got 'a b'"),
        (lambda: check_names("states", "Stable"), InvalidTypeError, "expected a list of names"),
        (lambda: check_names("states", ["Stable", 1]), InvalidTypeError, "got 1 (int) in the list"),
        (lambda: check_total_counts({}), InvalidArgumentError, "expected at least one topic"),
        (lambda: check_total_counts([("t", 2)]), InvalidTypeError, "expected a dict of topic"),
        (lambda: check_total_counts({"t": 0}), InvalidArgumentError, "total_counts['t']: got 0"),
        (lambda: check_new_topic(NewTopic("t", 0)), InvalidArgumentError, "or -1 for the default"),
        (lambda: check_new_topic(NewTopic("a b")), InvalidArgumentError, "topic: got 'a b'"),
        (lambda: check_total_counts({"a b": 2}), InvalidArgumentError, "topic: got 'a b'"),
        (lambda: check_new_topic("t"), InvalidTypeError, "expected a NewTopic"),
    ],
)
def test_wrong_arguments_are_named(
    check: Callable[[], object], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        check()
    assert text in str(caught.value)


@pytest.mark.parametrize("configs", [["retention.ms"], {"retention.ms": 1}, {5: "x"}])
def test_configs_of_a_topic_are_text(configs: Any) -> None:
    with pytest.raises(InvalidTypeError, match="configs of topic 't': got"):
        check_new_topic(NewTopic("t", configs=configs))


def test_valid_arguments_pass() -> None:
    check_new_topic(NewTopic("t", -1, 3, {"retention.ms": "1"}))
    check_total_counts({"t": MOST})
    check_partition(("t", 0))
    assert check_group_id("g") == "g"
    assert check_names("states", iter(["Stable", "Empty"])) == ["Stable", "Empty"]
