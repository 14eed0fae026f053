"""Values that are never shown: passwords, keys and tokens."""

import hmac
from typing import NoReturn


class Secret:
    """Text that no log line, error, repr or pickle has (Kafka: Password).

    Only `reveal` returns it.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text."""
        return self._value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    __hash__ = None  # type: ignore[assignment]  # as a class without a hash declares it

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied: the copy would be readable")
