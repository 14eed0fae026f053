"""Names of other Kafka clients, and their replacements.

A class has a table of the names of other clients. It is used only for a missing attribute or
keyword, so that ``dir()`` and ``hasattr()`` stay correct::

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name, _FOREIGN_NAMES)

``__getattr__`` slows down each access to an existing attribute, since the interpreter cannot
specialize it (about 30 ns per call). For hot paths use the metaclass instead::

    class Producer(metaclass=WithForeignNames, foreign_names=_FOREIGN_NAMES): ...
"""

import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from kclient.common.errors import InvalidTypeError


def missing_attribute(owner: object, name: str, hints: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that an object does not have.

    Args:
        owner: The object, or its class.
        name: Name of the attribute.
        hints: What to use instead, by the names of other clients.
    """
    kind = owner if isinstance(owner, type) else type(owner)
    text = f"{kind.__name__!r} object has no attribute {name!r}"
    hint = hints.get(name)
    if hint is None:
        return AttributeError(text, name=name, obj=owner)
    return AttributeError(f"{text}; {hint}", name=name)


def unexpected_keyword(call: str, name: str, hints: Mapping[str, str]) -> TypeError:
    """Return the error for a keyword argument that a call does not take.

    Args:
        call: Name of the method, without parentheses.
        name: The keyword.
        hints: What to use instead, by the keywords of other clients.
    """
    text = f"{call}() got an unexpected keyword argument {name!r}"
    hint = hints.get(name)
    return TypeError(text if hint is None else f"{text}; {hint}")


def refuse_keywords(call: str, given: Mapping[str, object], hints: Mapping[str, str]) -> None:
    """Raise for the first of the unexpected keyword arguments of a call.

    Args:
        call: Name of the method, without parentheses.
        given: The arguments by name.
        hints: What to use instead, by the keywords of other clients.

    Raises:
        InvalidTypeError: There is one.
    """
    for name in given:
        raise InvalidTypeError(str(unexpected_keyword(call, name, hints)))


def missing_import(
    module: str, name: str, hints: Mapping[str, str]
) -> ImportError | AttributeError:
    """Return the error for a name that a module does not have, for its ``__getattr__``.

    ``from module import name`` replaces an AttributeError by an ImportError without a hint, so that
    it gets an ImportError.

    Args:
        module: Name of the module.
        name: The name.
        hints: What to use instead, by the names of other clients.
    """
    hint = hints.get(name)
    if hint is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    # A statement `from ... import` called `__getattr__`, which called `missing` and this.
    if sys._getframe(3).f_code.co_name == "_handle_fromlist":  # noqa: SLF001 (it is documented)
        return ImportError(f"cannot import name {name!r} from {module!r}; {hint}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}; {hint}")


class ForeignName:
    """Attribute of another client; reading it raises an error with the replacement."""

    def __init__(self, name: str, hints: Mapping[str, str]) -> None:
        self._name = name
        self._hints = hints

    def __get__(self, owner: object, kind: type) -> NoReturn:
        raise missing_attribute(kind, self._name, self._hints)


class WithForeignNames(ABCMeta):
    """Metaclass of classes with names of other clients, without cost for existing names."""

    def __new__(
        metaclass,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        foreign_names: Mapping[str, str] | None = None,
        **others: Any,
    ) -> Any:
        """Create a class.

        Args:
            name: Name.
            bases: Bases.
            namespace: Attributes.
            foreign_names: What to use instead, by the names of other clients.
            others: As for ``type``.
        """
        hints = foreign_names or {}
        namespace |= {each: ForeignName(each, hints) for each in hints}
        if hints:
            namespace["__dir__"] = _dir_of_instance
        return super().__new__(metaclass, name, bases, namespace, **others)

    def __dir__(cls) -> Iterable[str]:
        """Return the names that exist."""
        foreign = {
            name
            for base in cls.__mro__
            for name, value in vars(base).items()
            if type(value) is ForeignName
        }
        return [name for name in super().__dir__() if name not in foreign]


def _dir_of_instance(owner: object) -> Iterable[str]:
    return sorted({*dir(type(owner)), *getattr(owner, "__dict__", ())})
