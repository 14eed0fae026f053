"""Short stacks for the errors that Spark shows to its users."""

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from kclient.common.errors import KafkaError

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


def short_stack(method: Callable[P, T]) -> Callable[P, T]:
    """Raise the errors of a method that Spark calls without the frames below it.

    Spark puts the whole stack of a planning step before the text of the error, in which it is the
    last line. The whole stack is logged at DEBUG.
    """

    @functools.wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(*arguments, **named)
        except KafkaError as error:
            _log.debug("%s failed", method.__qualname__, exc_info=True)
            raise error.with_traceback(None) from error.__cause__

    return call
