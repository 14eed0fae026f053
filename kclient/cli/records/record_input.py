"""Records of lines of text, for ``kclient produce``."""

from dataclasses import dataclass

from kclient.cli.records.record_text import unescape
from kclient.record.record import Header

ProducedRecord = tuple[bytes | None, bytes | None, list[Header], int | None]
"""Key, value, headers and timestamp in milliseconds (None: the current time) of a record."""


@dataclass(frozen=True, slots=True)
class TextInput:
    """How a line is a record.

    Attributes:
        key: Key of all records.
        key_separator: Instead of `key`: what is between key and value.
        is_escaped: Whether key and value are in the text form of ``kclient consume``.
        null_value: Value of a line that is sent as null.
        headers: Headers of all records.
        timestamp_ms: Timestamp of all records.
    """

    key: bytes | None
    key_separator: bytes | None
    is_escaped: bool
    null_value: bytes | None
    headers: list[Header]
    timestamp_ms: int | None

    def parse(self, line: bytes) -> ProducedRecord:
        """Return the record of a line.

        Raises:
            InvalidArgumentError: An escape sequence is invalid.
        """
        key: bytes | None = self.key
        value: bytes | None = line
        if self.key_separator is not None:
            before, found, after = line.partition(self.key_separator)
            if found:
                key, value = before, after
        if value == self.null_value:
            value = None
        elif self.is_escaped and value is not None:
            value = unescape(value)
        if self.is_escaped and self.key is None and key is not None:
            key = unescape(key)
        return key, value, self.headers, self.timestamp_ms

    def whole(self, value: bytes) -> ProducedRecord:
        """Return the record of a file."""
        return self.key, value, self.headers, self.timestamp_ms
