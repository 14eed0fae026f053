"""Configurations with typed attributes, and the definitions of their keys.

A configuration is a subclass of `Config` whose keys are declared with the functions of
`kclient.common.config_keys`; `ConfigDef.parse` returns an instance. The name of a key is the dotted
one of the Java client; the keyword has underscores instead. Either form is accepted, but not both
for one key. The error for an unknown key names the most similar key or, if it is a key of another
Kafka client, its replacement.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar, dataclass_transform

from kclient.common.config_aliases import ForeignOption, foreign_option
from kclient.common.errors import ConfigError

REQUIRED: Final[Any] = object()
"""Default of a key that must be set."""


class ConfigType(IntEnum):
    """Type of a key (Kafka: ConfigDef.Type), with the numbers of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigKey(NamedTuple):
    """Configuration key (Kafka: ConfigDef.ConfigKey).

    Attributes:
        name: Dotted name, as in Kafka's documentation.
        type: Kafka's type.
        convert: Converts the given value to the stored one, or raises TypeError or ValueError.
        expected: Description of valid values, for error texts and the reference page.
        default: Value if none is given; REQUIRED if there must be one.
        doc: One or two sentences for the reference page.
        secret: Whether the value must never be shown.
        refused: Why the key cannot be set; empty if it can.
        choices: Valid values, if they are a list; empty otherwise.
        server_keys: Keys of the broker that define the default of a key of topics, the first that
            is set counts (Kafka: ServerTopicConfigSynonyms).
        low: Lowest number, for error texts of the broker; None if the type alone limits it.
        high: Highest number likewise.
        values: Valid strings, or items of a list, as Kafka spells them; empty if any is valid.
    """

    name: str
    type: ConfigType
    convert: Callable[[object], object]
    expected: str
    default: object
    doc: str
    secret: bool = False
    refused: str = ""
    choices: tuple[object, ...] = ()
    server_keys: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    values: tuple[str, ...] = ()

    @property
    def keyword(self) -> str:
        """Name of the key as a Python keyword."""
        return self.name.replace(".", "_")

    def value_of(self, raw: object, spelling: str) -> object:
        """Return the stored value of a given one.

        Args:
            raw: The given value.
            spelling: Name of the key in the error text.

        Raises:
            ConfigError: The value is invalid.
        """
        try:
            return self.convert(raw)
        except ConfigError:  # its text has the invalid part of the value
            raise
        except (TypeError, ValueError) as problem:
            shown = "a secret value" if self.secret else describe(raw)
            hint = f"; {problem}" if str(problem) else ""
            raise ConfigError(f"{spelling}: got {shown}, expected {self.expected}{hint}") from None


class OtherValue(NamedTuple):
    """Declaration of a value of a configuration that is no key, with its default."""

    default: object


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Config:
    """Base of configurations: immutable, with one attribute per key, named as its keyword.

    A subclass declares attributes as a dataclass does, and type checkers take it for one. It is
    none, since the methods of a dataclass are generated and compiled when its module is imported.

    Attributes:
        CONFIG_KEYS: Keys that the class and its bases declare, by the names of their attributes.
    """

    CONFIG_KEYS: ClassVar[dict[str, ConfigKey]] = {}
    _defaults: ClassVar[dict[str, object]] = {}

    def __init_subclass__(cls) -> None:
        declared = {
            name: row for name, row in vars(cls).items() if isinstance(row, ConfigKey | OtherValue)
        }
        cls.CONFIG_KEYS = cls.CONFIG_KEYS | {
            name: row for name, row in declared.items() if isinstance(row, ConfigKey)
        }
        cls._defaults = cls._defaults | {name: row.default for name, row in declared.items()}
        for name in declared:
            delattr(cls, name)

    def __init__(self, **values: Any) -> None:
        """Set the given values, and the defaults of all others.

        Raises:
            TypeError: A name is unknown, or a required value is missing.
        """
        complete = self._defaults | values
        if len(complete) > len(self._defaults):
            unknown = min(values.keys() - self._defaults.keys())
            raise TypeError(f"{type(self).__name__} has no attribute {unknown!r}")
        for name, value in complete.items():
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__} needs the attribute {name!r}")
        vars(self).update(complete)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values() == self._values()

    # Values may be lists.
    __hash__ = None  # type: ignore[assignment]  # as a class without a hash declares it

    def with_values(self, **values: Any) -> Self:
        """Return a copy with other values of some attributes."""
        return type(self)(**{**self._values(), **values})

    def _values(self) -> dict[str, object]:
        # Not all of `vars`, which may have cached properties.
        return {name: getattr(self, name) for name in self._defaults}

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other.

        Args:
            given: The values that were set explicitly, by keyword.

        Returns:
            The configuration with the defaults that depend on other values.

        Raises:
            ConfigError: Two values contradict each other.
        """
        del given
        return self

    def __repr__(self) -> str:
        values = ", ".join(
            f"{name}={'...' if key.secret else repr(getattr(self, name))}"
            for name, key in self.CONFIG_KEYS.items()
        )
        return f"{type(self).__name__}({values})"


C = TypeVar("C", bound=Config)


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


class ConfigDef(Generic[C]):
    """Keys of one kind of client, of the broker or of topics (Kafka: ConfigDef).

    Args:
        owner: Name of the owner, for error texts.
        config: Class of the configuration, whose fields are the keys.
        refused: Keys that are known and cannot be set.
        unused: Keys that are accepted, with a value of the right form, and have no effect.
        variable: Returns the key of a name that has a variable part, or None if it is no such name.
            Their values are in the attribute `overrides` of the configuration, by name.
        of_client: Whether the owner is a client. If a client and the broker have a key of the same
            name, hints name the client.
    """

    def __init__(
        self,
        owner: str,
        config: type[C],
        refused: Iterable[ConfigKey] = (),
        *,
        unused: Iterable[ConfigKey] = (),
        variable: Callable[[str], ConfigKey | None] | None = None,
        of_client: bool = True,
    ) -> None:
        self.owner = owner
        self._variable = variable
        self.keys = {key.name: key for key in (*config.CONFIG_KEYS.values(), *refused)}
        self.unused = {key.name: key for key in unused}
        self.config = config
        known = self.keys | self.unused
        self._by_spelling = {key.keyword: key for key in known.values()} | known
        self._required = [key for key in self.keys.values() if key.default is REQUIRED]
        for key in self.keys.values():
            owner_of_key = _OWNERS.get(key.keyword)
            if owner_of_key is None or (of_client and not owner_of_key.of_client):
                _OWNERS[key.keyword] = _Owner(owner, key, of_client)

    def parse(self, given: Mapping[str, object]) -> C:
        """Return the configuration with the given values.

        Raises:
            ConfigError: A key is unknown, given twice, missing, or has a value of the wrong form,
                or two values contradict each other.
        """
        values: dict[str, Any] = {}
        overrides: dict[str, object] = {}
        for spelling, raw in given.items():
            key = self.key(spelling)
            if key.name not in self._by_spelling:
                overrides[key.name] = key.value_of(raw, spelling)
                continue
            if key.keyword in values:
                raise ConfigError(
                    f"{key.name}: got it twice, as {key.name!r} and {key.keyword!r}; give one"
                )
            values[key.keyword] = key.value_of(raw, spelling)
        for key in self._required:
            if key.keyword not in values:
                raise ConfigError(f"{key.keyword}: got nothing, expected {key.expected}")
        for key in self.unused.values():
            values.pop(key.keyword, None)
        if overrides:
            values["overrides"] = overrides
        return self.config(**values).validated(values)

    def has_key(self, spelling: str) -> bool:
        """Return whether there is a key of a name, with dots or underscores."""
        return spelling in self._by_spelling

    def key(self, spelling: str) -> ConfigKey:
        """Return the key of a name, with dots or underscores.

        Raises:
            ConfigError: There is none; the text has the name that was probably meant.
        """
        key = self._by_spelling.get(spelling)
        if key is None and self._variable is not None and isinstance(spelling, str):
            key = self._variable(spelling)
        if key is None:
            raise ConfigError(self._unknown(spelling))
        return key

    def _unknown(self, spelling: object) -> str:
        text = f"unknown option {spelling!r:.80} for {self.owner}"
        if not isinstance(spelling, str):
            return f"{text}; expected a str"
        hint = self._hint(spelling)
        return f"{text}; {hint or 'the options are listed in the configuration reference'}"

    def _hint(self, spelling: str) -> str | None:
        """Return a hint for an unknown option, in its spelling, with dots or underscores."""
        _import_clients()
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
        keywords = [key.keyword for key in (self.keys | self.unused).values()]
        near = most_similar(keyword, keywords, cutoff=_LEAST_SIMILARITY)
        longer = [each for each in keywords if each.startswith(f"{keyword}_")]
        if near is None and len(longer) == 1:
            near = longer[0]
        return None if near is None else self._by_spelling[near]


def most_similar(word: str, known: Sequence[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word that was probably meant, for a hint."""
    # Imported with the first wrong word.
    near: list[str] = import_module("difflib").get_close_matches(word, known, n=1, cutoff=cutoff)
    return near[0] if near else None


def _import_clients() -> None:
    """Define the keys of all clients, since hints name the owner of a key."""
    package = import_module(__name__.partition(".")[0])
    for name in package.__all__:
        getattr(package, name)


def _of_other(owner: _Owner) -> str:
    if owner.key.refused:
        return f"it is an option of {owner.name}, which cannot be set: {owner.key.refused}"
    return f"it is an option of {owner.name}"


class _DictName(str):
    """Name in a dict of options, where dots are usual."""

    __slots__ = ()


def _spelt(keyword: str, like: str) -> str:
    """Return a keyword, with dots if the user's spelling has dots."""
    has_dots = "." in like or (isinstance(like, _DictName) and "_" not in like)
    return keyword.replace("_", ".") if has_dots else keyword


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
    named: dict[str, object] = {}
    for key, value in config.items():
        named[_DictName(key) if type(key) is str else key] = value
    return {**named, **keywords}


def _no_dict(config: object) -> ConfigError:
    hint = ""
    if isinstance(config, str):
        hint = "; addresses go into bootstrap_servers=..., topics into the calls that use them"
    return ConfigError(f"config: got {describe(config)}, expected a dict of option names{hint}")
