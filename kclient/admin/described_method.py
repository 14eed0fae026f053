"""Description of the admin client's methods, for `help`, editors and type hints at run time."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from inspect import Signature


def describe(method: Callable[..., object], call: Callable[..., object], owner: str) -> None:
    """Give a method the name, docstring and signature of a call, with the result of its steps.

    Args:
        method: Function that becomes a method.
        call: Function in steps, of a requester and the method's arguments.
        owner: Name of the class.
    """
    name = call.__name__
    method.__name__, method.__qualname__ = name, f"{owner}.{name}"
    method.__doc__ = call.__doc__
    hints = dict(call.__annotations__)
    del hints["requester"]
    result = get_args(hints["return"])[-1]  # Steps[R] is Generator[Wait, None, R]
    hints["return"] = None if result is type(None) else result
    method.__annotations__ = hints
    vars(method)["__wrapped__"] = _Wrapped(method, call)


class _Wrapped:
    """Call behind a method, with the signature of the method.

    `inspect.signature` follows `__wrapped__` to the first object that has a signature. This one
    computes it when asked, since the import of `inspect` takes longer than that of a client.
    """

    def __init__(self, method: Callable[..., object], call: Callable[..., object]) -> None:
        self._method = method
        self.__wrapped__ = call

    @property
    def __signature__(self) -> "Signature":
        inspect: Any = import_module("inspect")
        given: Signature = inspect.signature(self.__wrapped__)
        _, *parameters = given.parameters.values()
        this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        result = self._method.__annotations__["return"]
        return given.replace(parameters=[this, *parameters], return_annotation=result)
