"""Interceptors of producers and consumers: the option, and calls that fail."""

import logging
from typing import Any

import pytest

from kclient.common.errors import ConfigError
from kclient.common.interceptors import notify, transformed
from kclient.common.log_context import NO_LOG_CONTEXT
from kclient.consumer import ConsumerInterceptor
from kclient.consumer.consumer_config import CONSUMER_CONFIG

LOG = NO_LOG_CONTEXT.logger("kclient.test")


def add(number: int) -> int:
    return number + 1


def fail(number: int) -> int:
    raise ValueError("no")


def none(number: int) -> int:
    return None  # type: ignore[return-value]  # the mistake


def test_value_passes_through_all_interceptors() -> None:
    assert transformed(LOG, 1, [add, add], int) == 3
    assert transformed(LOG, 1, [], int) == 1


def test_failing_interceptor_is_logged_and_skipped(caplog: pytest.LogCaptureFixture) -> None:
    assert transformed(LOG, 1, [add, fail, add], int) == 3
    (record,) = caplog.records
    assert (record.levelno, "its result is not used" in record.getMessage()) == (
        logging.ERROR,
        True,
    )
    assert record.exc_info is not None


def test_result_of_another_type_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    assert transformed(LOG, 1, [none, add], int) == 2
    assert "returned NoneType, expected a int" in caplog.text


def test_error_of_a_notified_interceptor_does_not_prevent_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[object] = []
    notify(LOG, [seen.append, fail, seen.append], 5)
    assert seen == [5, 5]
    assert "raised" in caplog.text


class Counting(ConsumerInterceptor):
    """An interceptor."""


class NeedsArguments(ConsumerInterceptor):
    """An interceptor that cannot be created without arguments."""

    def __init__(self, name: str) -> None:
        self.name = name


class Coroutine(ConsumerInterceptor):
    """An interceptor with a coroutine function."""

    async def on_commit(self, offsets: object) -> None: ...  # type: ignore[override]  # refused


def configured(value: object) -> Any:
    return CONSUMER_CONFIG.parse(
        {"bootstrap.servers": "h:1", "interceptor.classes": value}
    ).interceptor_classes


def test_classes_are_instantiated_and_objects_used_as_they_are() -> None:
    given = NeedsArguments("a")
    created, kept = configured([Counting, given])
    assert isinstance(created, Counting)
    assert kept is given


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (Counting(), "a single interceptor must be in a list, too"),
        (["pkg.Counting"], "classes are not loaded by name"),
        ([object()], r"has no on_consume\(\)"),
        ([Coroutine()], r"on_commit\(\) of .* is a coroutine function"),
        ([NeedsArguments], r"NeedsArguments\(\) raised TypeError: .*pass an object of it instead"),
    ],
)
def test_other_values_are_refused_with_the_reason(value: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        configured(value)
