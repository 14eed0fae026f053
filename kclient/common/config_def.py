"""Definitions of configuration keys: type, default, check and documentation.

The name of a key is the dotted one of the Java client; the keyword has underscores instead.
`ConfigDef.parse` accepts either form, but not both for one key. The error for an unknown key names
the most similar key or, if it is a key of another Kafka client, its replacement.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kclient.common.config_aliases import ForeignOption, foreign_option
from kclient.common.errors import ConfigError

Check = Callable[[Any], str | None]
"""Returns the expected form, or None if the value is valid."""

REQUIRED: Final = object()


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Configuration key (Kafka: ConfigDef.ConfigKey).

    Attributes:
        name: Dotted name, as in Kafka's documentation.
        convert: Converts the given value to the stored one, or raises TypeError or ValueError.
        expected: Description of valid values, for error texts and the reference page.
        default: Value if none is given; REQUIRED if there must be one.
        doc: One or two sentences for the reference page.
        secret: Whether the value must never be shown.
        refused: Why the key cannot be set; empty if it can.
        choices: Valid values, if they are a list; empty otherwise.
    """

    name: str
    convert: Callable[[object], object]
    expected: str
    default: object
    doc: str
    secret: bool = False
    refused: str = ""
    choices: tuple[object, ...] = ()

    @property
    def keyword(self) -> str:
        """Name of the key as a Python keyword."""
        return self.name.replace(".", "_")


def describe(value: object) -> str:
    """Return a value for an error message: its repr, at most 80 characters, and its type."""
    return f"{value!r:.80} ({type(value).__name__})"


class _Owner(NamedTuple):
    """Owner of a key: a kind of client, or the broker."""

    name: str
    key: ConfigKey
    of_client: bool


# By keyword, for hints to users who set a key of another client.
_OWNERS: dict[str, _Owner] = {}

# Below it a suggestion is unrelated more often than a misspelling.
_LEAST_SIMILARITY = 0.8


class ConfigDef:
    """Set of keys of one kind of client, or of the broker (Kafka: ConfigDef).

    Args:
        owner: Name of the owner, for error texts.
        keys: Keys.
        of_client: Whether the owner is a client. If a client and the broker have a key of the same
            name, hints name the client.
    """

    def __init__(self, owner: str, keys: Iterable[ConfigKey], *, of_client: bool = True) -> None:
        self.owner = owner
        self.keys = {key.name: key for key in keys}
        self._by_spelling = {key.keyword: key for key in self.keys.values()} | self.keys
        for key in self.keys.values():
            known = _OWNERS.get(key.keyword)
            if known is None or (of_client and not known.of_client):
                _OWNERS[key.keyword] = _Owner(owner, key, of_client)

    def parse(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Return the values of all keys, by keyword, from the given values.

        Raises:
            ConfigError: A key is unknown, given twice, missing, or has a value of the wrong form.
        """
        values: dict[str, Any] = {}
        for spelling, raw in given.items():
            key = self._by_spelling.get(spelling)
            if key is None:
                raise ConfigError(self._unknown(spelling))
            if key.keyword in values:
                raise ConfigError(
                    f"{key.name}: got it twice, as {key.name!r} and {key.keyword!r}; give one"
                )
            values[key.keyword] = _converted(key, spelling, raw)
        for key in self.keys.values():
            if key.keyword not in values:
                if key.default is REQUIRED:
                    raise ConfigError(f"{key.keyword}: got nothing, expected {key.expected}")
                values[key.keyword] = key.default
        return values

    def _unknown(self, spelling: object) -> str:
        text = f"unknown option {spelling!r:.80} for {self.owner}"
        if not isinstance(spelling, str):
            return f"{text}; expected a str"
        hint = self._hint(spelling)
        return f"{text}; {hint or 'the options are listed in the configuration reference'}"

    def _hint(self, spelling: str) -> str | None:
        """Return a hint for an unknown option, in its spelling, with dots or underscores."""
        keyword = spelling.replace(".", "_").lower()
        foreign = foreign_option(keyword)
        if foreign is not None:
            return self._replacement(foreign, spelling)
        if keyword in _OWNERS and keyword not in self._by_spelling:
            return _of_other(_OWNERS[keyword])
        near = self._near(keyword)
        if near is None:
            return None
        if near.refused:
            return (
                f"did you mean {_spelt(near.keyword, spelling)!r}? It cannot be set: {near.refused}"
            )
        return f"did you mean {_spelt(near.keyword, spelling)!r}?"

    def _replacement(self, foreign: ForeignOption, spelling: str) -> str:
        """Return the option that replaces another client's, or what to do without it."""
        keywords = [name.replace(".", "_") for name in foreign.names]
        own = [name for name in keywords if self._can_be_set(name)]
        named = ", ".join(_spelt(name, spelling) for name in own or keywords[:1])
        note = f" ({foreign.note})" if foreign.note else ""
        if not named:
            return foreign.note
        if own:
            return f"here it is {named}{note}"
        owner = _OWNERS[keywords[0]].name if keywords[0] in _OWNERS else "the clients"
        return f"it is {named}{note}, an option of {owner}"

    def _can_be_set(self, keyword: str) -> bool:
        key = self._by_spelling.get(keyword)
        return key is not None and not key.refused

    def _near(self, keyword: str) -> ConfigKey | None:
        """Return the key that was probably meant: a similar one, or the only longer one."""
        keywords = [key.keyword for key in self.keys.values()]
        near = difflib.get_close_matches(keyword, keywords, n=1, cutoff=_LEAST_SIMILARITY)
        longer = [each for each in keywords if each.startswith(f"{keyword}_")]
        if not near and len(longer) == 1:
            near = longer
        return self._by_spelling[near[0]] if near else None


def _of_other(owner: _Owner) -> str:
    if owner.key.refused:
        return f"it is an option of {owner.name}, which cannot be set: {owner.key.refused}"
    return f"it is an option of {owner.name}"


def _spelt(keyword: str, like: str) -> str:
    """Return a keyword, with dots if the user's spelling has dots."""
    return keyword.replace("_", ".") if "." in like else keyword


def _converted(key: ConfigKey, spelling: str, raw: object) -> object:
    try:
        return key.convert(raw)
    except ConfigError:  # its text has the invalid part of the value
        raise
    except (TypeError, ValueError) as problem:
        shown = "a secret value" if key.secret else describe(raw)
        hint = f"; {problem}" if str(problem) else ""
        raise ConfigError(f"{spelling}: got {shown}, expected {key.expected}{hint}") from None


def whole_number(
    name: str, default: object, doc: str, *, low: int = 0, high: int = 2**63 - 1
) -> ConfigKey:
    """Define a key that holds an int between `low` and `high`."""

    def convert(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int | float | str):
            raise TypeError
        if isinstance(raw, float) and not raw.is_integer():
            raise ValueError(_of_fraction(name, raw))
        value = _int(raw)
        if value > high:
            raise ValueError(f"it is more than {high}")
        if value < low:
            raise ValueError
        return value

    upper = "" if high >= 2**31 - 1 else f" and <= {high}"
    return ConfigKey(name, convert, f"a whole number >= {low}{upper}", default, doc)


def _int(raw: float | str) -> int:
    try:
        return int(raw)
    except ValueError:  # drop the text of int()
        raise ValueError from None


def _of_fraction(name: str, raw: float) -> str:
    if name.endswith(".ms") and math.isfinite(raw) and raw > 0:
        return f"it is in milliseconds: {raw:g} s are {raw * 1000:g}"
    return ""


def text(name: str, default: object, doc: str, *, secret: bool = False) -> ConfigKey:
    """Define a key that holds a non-empty str, or None if the default is None."""

    def convert(raw: object) -> str | None:
        if raw is None and default is None:
            return None
        if not isinstance(raw, str):
            raise TypeError
        if not raw and default != "":
            raise ValueError
        return raw

    return ConfigKey(name, convert, "a non-empty str", default, doc, secret)


def switch(name: str, default: bool, doc: str) -> ConfigKey:  # noqa: FBT001 (a row of a table)
    """Define a key that holds a bool; the strings 'true' and 'false' are accepted too."""

    def convert(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, str) and raw.lower() in {"true", "false"}:
            return raw.lower() == "true"
        raise TypeError

    return ConfigKey(name, convert, "True or False", default, doc)


def choice(name: str, default: object, values: Mapping[object, object], doc: str) -> ConfigKey:
    """Define a key that accepts one of several values, each mapped to the stored one."""

    def convert(raw: object) -> object:
        folded = raw.lower() if isinstance(raw, str) else raw
        if isinstance(folded, bool) or folded not in values:
            raise ValueError
        return values[folded]

    shown = ", ".join(repr(value) for value in values)
    return ConfigKey(name, convert, f"one of {shown}", default, doc, choices=tuple(values))


def anything(
    name: str, default: object, expected: str, doc: str, check: Callable[[object], bool]
) -> ConfigKey:
    """Define a key that holds an object which `check` accepts."""

    def convert(raw: object) -> object:
        if not check(raw):
            raise TypeError
        return raw

    return ConfigKey(name, convert, expected, default, doc)


def merged(
    config: Mapping[str, object] | None, keywords: Mapping[str, object]
) -> dict[str, object]:
    """Merge a dict of dotted names with keyword arguments; `parse` refuses a key in both."""
    if config is None:
        return dict(keywords)
    if not isinstance(config, Mapping):
        raise _no_dict(config)
    twice = config.keys() & keywords.keys()
    if twice:
        raise ConfigError(f"{min(twice)}: got it twice, in the dict and as a keyword; give one")
    return {**config, **keywords}


def _no_dict(config: object) -> ConfigError:
    hint = ""
    if isinstance(config, str):
        hint = "; addresses go into bootstrap_servers=..., topics into the calls that use them"
    return ConfigError(f"config: got {describe(config)}, expected a dict of option names{hint}")
