"""Names of other Kafka clients, and what replaces them here.

A class whose users may come from another client keeps a table of that client's names. The table is
only looked at where an attribute or a keyword is missing, so that ``dir()`` and ``hasattr()`` stay
right and nothing that exists costs more::

    if not TYPE_CHECKING:  # type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name, _FOREIGN_NAMES)
"""

from collections.abc import Mapping


def missing_attribute(owner: object, name: str, hints: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that an object does not have.

    Args:
        owner: The object.
        name: Name of the attribute.
        hints: What to use instead, by the names of other clients.
    """
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
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
