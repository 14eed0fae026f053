"""Which topics and partitions a source reads."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition, check_topic_name

_CHOICES = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One of the three ways to say what is read; the others are empty.

    Attributes:
        topics: Topics by name.
        pattern: Regular expression of Python's that whole topic names match.
        partitions: Single partitions.
    """

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Topics that are named; none of a pattern."""
        return frozenset(self.topics) | {partition.topic for partition in self.partitions}

    def accepts(self, topic: str) -> bool:
        """Return whether a topic is wanted, or partitions of it."""
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.names

    def __str__(self) -> str:
        if self.pattern:
            return f"subscribePattern {self.pattern!r}"
        if self.topics:
            return f"subscribe {','.join(self.topics)!r}"
        return f"assign {', '.join(map(str, self.partitions))}"


def parse_subscription(values: Mapping[str, str | None]) -> Subscription:
    """Return what the three options say, of which exactly one is given.

    Raises:
        ConfigError: None or several are given, or one has a value of the wrong form.
    """
    given = [name for name in _CHOICES if values[name] is not None]
    if len(given) != 1:
        raise ConfigError(
            f"{', '.join(_CHOICES)}: got {' and '.join(given) or 'none of them'}, expected exactly "
            "one"
        )
    chosen = given[0]
    text = values[chosen] or ""
    if chosen == "subscribe":
        return Subscription(topics=_topics(text))
    if chosen == "subscribePattern":
        return Subscription(pattern=_pattern(text))
    return Subscription(partitions=_partitions(text))


def _topics(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    try:
        return tuple(sorted({check_topic_name(name) for name in names}))
    except KafkaError as error:
        raise ConfigError(
            f"subscribe: got {describe(text)}, expected topic names, separated by commas; {error}"
        ) from None


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(
            f"subscribePattern: got {describe(text)}, expected a regular expression as Python "
            f"writes them; {error}"
        ) from None
    if not text:
        raise ConfigError("subscribePattern: got '', expected a regular expression")
    return text


def _partitions(text: str) -> tuple[TopicPartition, ...]:
    try:
        parsed = json.loads(text)
        found = {
            TopicPartition(check_topic_name(topic), _number(number))
            for topic, numbers in parsed.items()
            for number in numbers
        }
    except (ValueError, TypeError, AttributeError, KafkaError) as error:
        raise _no_partitions(text, str(error)) from None
    if not found:
        raise _no_partitions(text, "it names none")
    return tuple(sorted(found))


def _number(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise ValueError(f"partition {raw!r}")
    return raw


def _no_partitions(text: str, problem: str) -> ConfigError:
    return ConfigError(
        f'assign: got {describe(text)}, expected partitions as in {{"topic":[0,1]}}; {problem:.120}'
    )
