"""Timeouts and callbacks as arguments of calls."""

import inspect
import math
import sys
from collections.abc import Callable
from functools import partial

import pytest

from kclient.common.arguments import (
    CO_COROUTINE,
    CO_VARARGS,
    LONGEST_S,
    check_callback,
    check_seconds,
    check_timeout,
    is_coroutine_function,
    is_plain_function,
)
from kclient.common.errors import InvalidArgumentError, InvalidTypeError


@pytest.mark.parametrize(("given", "seconds"), [(0, 0.0), (1, 1.0), (0.25, 0.25), (600, 600.0)])
def test_seconds_are_returned_as_float(given: float, seconds: float) -> None:
    checked = check_seconds("timeout", given)
    assert (checked, type(checked)) == (seconds, float)


def test_infinity_is_a_wait_that_the_system_supports() -> None:
    assert 10 * LONGEST_S < check_seconds("timeout", math.inf) < 2**31


@pytest.mark.parametrize("given", ["1", None, True, b"1", [1]])
def test_timeout_that_is_no_number_is_refused(given: object) -> None:
    with pytest.raises(InvalidTypeError, match=r"wait: got .*, expected seconds >= 0 or None"):
        check_seconds("wait", given)


@pytest.mark.parametrize("given", [-1, -0.001, math.nan, -math.inf])
def test_negative_timeout_is_refused(given: float) -> None:
    with pytest.raises(InvalidArgumentError, match="expected seconds >= 0; 0 does not wait"):
        check_seconds("timeout", given)


def test_probable_milliseconds_are_refused_with_their_seconds() -> None:
    with pytest.raises(InvalidArgumentError, match=r"at most 600; .* pass 1.5;"):
        check_seconds("timeout", 1500)
    with pytest.raises(InvalidArgumentError):
        check_seconds("timeout", math.nextafter(LONGEST_S, math.inf))


def test_timeout_is_in_milliseconds_with_a_default() -> None:
    assert check_timeout(1.5, default_ms=7.0) == 1500.0
    assert check_timeout(0, default_ms=7.0) == 0.0
    assert check_timeout(None, default_ms=7.0) == 7.0
    with pytest.raises(InvalidTypeError, match="timeout: got"):
        check_timeout("5", default_ms=7.0)


@pytest.mark.parametrize("given", [None, print, partial(print, "x"), lambda _: None, Exception])
def test_callables_and_none_are_callbacks(given: Callable[..., object] | None) -> None:
    check_callback("on_done", given, "a callable")


async def coroutine() -> None: ...


def test_other_objects_and_coroutine_functions_are_no_callbacks() -> None:
    with pytest.raises(InvalidTypeError, match=r"on_done: got 'x' .*, expected a callable of 1"):
        check_callback("on_done", "x", "a callable of 1")
    with pytest.raises(InvalidTypeError, match="coroutines would not be awaited"):
        check_callback("on_done", coroutine, "a callable")


def test_flags_are_those_of_inspect() -> None:
    assert (CO_VARARGS, CO_COROUTINE) == (inspect.CO_VARARGS, inspect.CO_COROUTINE)


class _Method:
    def plain(self) -> None: ...

    async def coroutine(self) -> None: ...

    async def __call__(self) -> None: ...


async def _coroutine() -> None: ...


def _marked() -> None: ...


if sys.version_info >= (3, 12):
    inspect.markcoroutinefunction(_marked)


@pytest.mark.parametrize(
    "function",
    [
        print,
        len,
        _Method,
        _Method().plain,
        _Method().coroutine,
        _Method(),
        _coroutine,
        _marked,
        partial(_coroutine),
        partial(print),
        lambda: None,
    ],
)
def test_coroutine_functions_are_those_of_inspect(function: object) -> None:
    assert is_coroutine_function(function) == inspect.iscoroutinefunction(function)
    if is_plain_function(function):
        assert not inspect.iscoroutinefunction(function)
