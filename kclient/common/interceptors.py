"""Interceptors of producers and consumers (KIP-42): validation of the option, and the calls."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from kclient.common.arguments import is_coroutine_function
from kclient.common.config_def import ConfigType
from kclient.common.config_keys import key
from kclient.common.errors import ConfigError
from kclient.common.interrupts import signals_take_effect
from kclient.common.log_context import ContextLogger

V = TypeVar("V")


def interceptor_key(base: type[object], methods: Sequence[str], doc: str) -> tuple[Any, ...]:
    """Declare the key ``interceptor.classes``.

    A class in the list is instantiated without arguments when the client is created, as in the Java
    client; any other object is used as it is.

    Args:
        base: Public base class of interceptors.
        methods: Methods that an interceptor must have.
        doc: Calls of the interceptors, for the reference page.
    """
    named = f"{', '.join(f'{name}()' for name in methods[:-1])} and {methods[-1]}()"

    def convert(raw: object) -> tuple[Any, ...]:
        if not isinstance(raw, list | tuple):
            raise TypeError("a single interceptor must be in a list, too")
        return tuple(_interceptor(each, base, methods) for each in raw)

    return key(
        "interceptor.classes",
        ConfigType.LIST,
        convert,
        f"a list of {base.__name__} classes or objects, with {named}",
        (),
        f"{doc} A class is instantiated without arguments.",
    )


def transformed(
    log: ContextLogger, value: V, stages: Iterable[Callable[[V], V]], kind: type[V]
) -> V:
    """Return a value passed through interceptors; a failing one is skipped.

    Args:
        log: Logger of failures.
        value: Argument of the first interceptor.
        stages: Method of each interceptor that returns the value for the next one.
        kind: Expected class of the result; anything else is logged and ignored.
    """
    for stage in stages:
        try:
            result = stage(value)
        except Exception:
            log.exception("interceptor %r raised; its result is not used", stage)
            continue
        if isinstance(result, kind):
            value = result
        else:
            log.error(
                "interceptor %r returned %s, expected a %s; return the argument to leave it "
                "unchanged",
                stage,
                type(result).__name__,
                kind.__name__,
            )
    return value


def notify(log: ContextLogger, stages: Iterable[Callable[..., object]], *arguments: object) -> None:
    """Call a method of each interceptor; exceptions are logged."""
    for stage in stages:
        try:
            stage(*arguments)
        except Exception:
            log.exception("interceptor %r raised", stage)


def _interceptor(given: object, base: type[object], methods: Sequence[str]) -> object:
    if isinstance(given, str):
        raise TypeError("classes are not loaded by name; pass the class itself or an object")
    interceptor = _instance(given) if isinstance(given, type) else given
    for name in methods:
        method = getattr(interceptor, name, None)
        if not callable(method):
            raise TypeError(f"{given!r:.80} has no {name}(); {base.__name__} has them all")
        if is_coroutine_function(method):
            raise TypeError(f"{name}() of {given!r:.80} is a coroutine function")
    return interceptor


def _instance(kind: type[object]) -> object:
    try:
        with signals_take_effect():
            return kind()
    except Exception as error:
        raise ConfigError(
            f"interceptor_classes: {kind.__qualname__}() raised {type(error).__name__}: {error}; "
            "expected a class that takes no arguments; pass an object of it instead"
        ) from error
