"""Topics and partitions that a source reads."""

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.options.subscription import Subscription, parse_subscription
from tests.support.clients.clients import place


def test_topics_are_sorted_and_unique() -> None:
    found = parse_subscription(" b, a,b ", None, None)
    assert found == Subscription(topics=("a", "b"))
    assert found.names == {"a", "b"}
    assert str(found) == "subscribe 'a,b'"


def test_pattern_matches_whole_names() -> None:
    found = parse_subscription(None, "orders-.", None)
    assert [found.accepts(name) for name in ("orders-1", "orders-12", "my-orders-1")] == [
        True,
        False,
        False,
    ]
    assert found.names == frozenset()
    assert str(found) == "subscribePattern 'orders-.'"


def test_partitions_are_sorted_and_unique() -> None:
    found = parse_subscription(None, None, '{"b":[0],"a":[2,1,2]}')
    assert found.partitions == (place("a", 1), place("a", 2), place("b"))
    assert found.accepts("a")
    assert not found.accepts("c")
    assert str(found) == "assign a-1, a-2, b-0"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((None, None, None), "got none of them, expected exactly one"),
        (("a", "b", None), "got subscribe and subscribePattern, expected exactly one"),
        (("a", "b", "{}"), "got subscribe and subscribePattern and assign"),
        (("", None, None), "subscribe: got ''"),
        (("a,,b", None, None), "expected topic names, separated by commas"),
        ((None, "(", None), "subscribePattern: got '(' (str), expected a Python regular expres"),
        ((None, "", None), "subscribePattern: got '', expected a regular expression"),
        ((None, None, ""), "assign: got ''"),
        ((None, None, "[]"), "assign: got '[]'"),
        ((None, None, "{}"), "it contains none"),
        ((None, None, '{"a":[]}'), "it contains none"),
        ((None, None, '{"a":[-1]}'), "partition -1"),
        ((None, None, '{"a":[true]}'), "partition True"),
        ((None, None, '{"a":["0"]}'), "partition '0'"),
        ((None, None, '{"a b":[0]}'), "assign: got"),
    ],
)
def test_wrong_options_are_named(given: tuple[str | None, ...], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_subscription(*given)
    assert text in str(caught.value)
