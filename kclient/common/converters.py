"""Validation of serializers and deserializers when a client is created."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, final

from kclient.common.arguments import refuse_coroutine_function
from kclient.common.config_def import ConfigType
from kclient.common.config_keys import key

if TYPE_CHECKING:
    from inspect import Signature

_CONTEXT = (None, None, None)  # in place of (topic, headers, data)

Converter = Callable[[str, Any, Any], Any]
"""Converts (topic, headers, data)."""


@final
class DataOnly:
    """Serializer or deserializer of the data only, such as ``json.loads``.

    It is not called for None, which stays None: a null key or value has no data to convert. Code on
    the path of each record tests for this class and calls `function` directly.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function: Final = function

    def __call__(self, topic: str, headers: Any, data: Any, /) -> Any:
        """Return the result of the function."""
        return None if data is None else self.function(data)

    def __repr__(self) -> str:
        return repr(self.function)


def converter_key(name: str, method: str, doc: str) -> Converter | None:
    """Declare a key that holds a serializer or a deserializer.

    It accepts a callable with the parameters (data) or (topic, headers, data), and an object with a
    method with the latter. The form is determined once, by the signature.

    Args:
        name: Dotted name of the key.
        method: Name of the method, ``serialize`` or ``deserialize``.
        doc: For the reference page.
    """

    def convert(raw: object) -> Converter | None:
        return None if raw is None else _converter(raw, method)

    expected = (
        f"a callable with the parameters (data) or (topic, headers, data), or an object with "
        f"{method}(topic, headers, data)"
    )
    return key(name, ConfigType.CLASS, convert, expected, None, doc)


def _converter(raw: object, method: str) -> Converter:
    """Return a function of (topic, headers, data).

    Raises:
        TypeError: The object has none of the accepted forms; the text has the cause.
    """
    if isinstance(raw, type) and _makes_converters(raw, method):
        raise TypeError(f"it is a class; give an instance: {raw.__name__}(...)")
    bound = getattr(raw, method, None)
    if callable(bound) and (not callable(raw) or _parameters_fit(raw) is None):
        if not _takes_context(bound):
            raise TypeError(f"the parameters of {method} are {_signature(bound)}")
        refuse_coroutine_function(bound)
        return bound  # type: ignore[no-any-return]  # what was just checked
    if not callable(raw):
        raise TypeError
    refuse_coroutine_function(raw)
    takes_data_only = _parameters_fit(raw)
    if takes_data_only is None:
        raise TypeError(f"its parameters are {_signature(raw)}")
    return DataOnly(raw) if takes_data_only else raw


def _makes_converters(kind: type, method: str) -> bool:
    """Return whether the instances of a class are converters, unlike those of ``int``."""
    return hasattr(kind, method) or any("__call__" in vars(base) for base in kind.__mro__)


def _parameters_fit(function: Callable[..., Any]) -> bool | None:
    """Return True for (data), False for (topic, headers, data), None for neither.

    A function that accepts one argument as well as three is called with the data, unless its first
    parameter is ``topic`` or it accepts any number of arguments and requires none: ``str.encode``
    has two optional parameters after the text.
    """
    try:
        signature = _signature(function)
    except (TypeError, ValueError):
        return True  # a builtin without a signature, such as int or struct.Struct.unpack
    if not _binds(signature, _CONTEXT[:1]):
        return False if _binds(signature, _CONTEXT) else None
    if isinstance(function, type) or not _binds(signature, _CONTEXT):
        return True
    parameters = list(signature.parameters.values())
    if parameters[0].name == "topic":
        return False
    return any(
        each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}
        and each.default is each.empty
        for each in parameters
    ) or all(each.kind is not each.VAR_POSITIONAL for each in parameters)


def _takes_context(function: Callable[..., Any]) -> bool:
    try:
        return _binds(_signature(function), _CONTEXT)
    except (TypeError, ValueError):
        return False


def _signature(function: Callable[..., Any]) -> "Signature":
    # Imported with the first converter; see `is_coroutine_function`.
    signature: Signature = import_module("inspect").signature(function)
    return signature


def _binds(signature: "Signature", arguments: tuple[None, ...]) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True
