"""Table of options with case-insensitive names: Spark converts them to lower case."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from kclient.common.config_def import Config, ConfigType
from kclient.common.config_keys import key
from kclient.common.errors import ConfigError

_KAFKA = "kafka."
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")


C = TypeVar("C", bound=Config)


class OptionTable(Generic[C]):
    """The options of the source or of the sink.

    Args:
        owner: ``the source`` or ``the sink``, for messages.
        options: Class of the parsed options, whose fields are the options.
        ignored: Names that are accepted and have no effect.
        elsewhere: Names that are options of another owner, with that owner.
    """

    def __init__(
        self,
        owner: str,
        options: type[C],
        *,
        ignored: Iterable[str] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> None:
        self.owner = owner
        self._options = options
        self._fields = {key.name.lower(): name for name, key in options.CONFIG_KEYS.items()}
        self.rows = {row.name.lower(): row for row in options.CONFIG_KEYS.values()}
        self._ignored = {name.lower() for name in ignored}
        self._elsewhere = {name.lower(): other for name, other in (elsewhere or {}).items()}

    def parse(self, given: Mapping[str, str]) -> C:
        """Return the options, without ``kafka.*``.

        Raises:
            ConfigError: An option is unknown or has a value of the wrong form.
        """
        values: dict[str, Any] = {}
        for spelling, raw in given.items():
            name = spelling.lower()
            row = self.rows.get(name)
            if row is not None:
                values[self._fields[name]] = row.value_of(raw, row.name)
            elif not name.startswith(_KAFKA) and name not in self._ignored:
                raise ConfigError(self._unknown(spelling))
        return self._options(**values)

    def _unknown(self, given: str) -> str:
        text = f"unknown option {given!r:.80} for {self.owner}"
        name = given.lower()
        if name in self._elsewhere:
            return f"{text}; it is an option of {self._elsewhere[name]}"
        near = difflib.get_close_matches(name, self.rows, n=1, cutoff=0.7)
        if near:
            return f"{text}; did you mean {self.rows[near[0]].name!r}?"
        return f"{text}; options of Kafka clients are written 'kafka.<key>'"


def duration_ms(name: str, default: int, doc: str) -> int:
    """Declare an option that holds a time such as '15m', '30s', '500ms' or milliseconds."""

    def convert(raw: object) -> int:
        match = _DURATION.fullmatch(str(raw).strip().lower())
        if match is None or (match[2] or "ms") not in _UNITS_MS:
            raise ValueError
        return int(match[1]) * _UNITS_MS[match[2] or "ms"]

    expected = "a time such as '15m', '30s' or '500ms'"
    return key(name, ConfigType.LONG, convert, expected, default, doc)
