"""Topics and partitions that a source reads."""

import json
import re
from dataclasses import dataclass

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition, check_topic_name

_CHOICES = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics and partitions to read; exactly one attribute is set.

    Attributes:
        topics: Topics by name.
        pattern: Python regular expression that a whole topic name must match.
        partitions: Single partitions.
    """

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Names of the topics; empty for a pattern."""
        return frozenset(self.topics) | {partition.topic for partition in self.partitions}

    def accepts(self, topic: str) -> bool:
        """Return whether the topic, or partitions of it, are subscribed to."""
        if self.pattern:
            return re.fullmatch(self.pattern, topic) is not None
        return topic in self.names

    def accepts_partition(self, partition: TopicPartition) -> bool:
        """Return whether the partition is subscribed to."""
        if self.partitions:
            return partition in self.partitions
        return self.accepts(partition.topic)

    def __str__(self) -> str:
        if self.pattern:
            return f"subscribePattern {self.pattern!r}"
        if self.topics:
            return f"subscribe {','.join(self.topics)!r}"
        return f"assign {', '.join(map(str, self.partitions))}"


def parse_subscription(
    subscribe: str | None, pattern: str | None, assign: str | None
) -> Subscription:
    """Parse the three options, of which exactly one must be given.

    Raises:
        ConfigError: None or several are given, or the value has the wrong form.
    """
    values = zip(_CHOICES, (subscribe, pattern, assign), strict=True)
    given = [name for name, value in values if value is not None]
    if len(given) != 1:
        raise ConfigError(
            f"{', '.join(_CHOICES)}: got {' and '.join(given) or 'none of them'}, expected exactly "
            "one"
        )
    if subscribe is not None:
        return Subscription(topics=_topics(subscribe))
    if pattern is not None:
        return Subscription(pattern=_pattern(pattern))
    return Subscription(partitions=_partitions(assign or ""))


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
            f"subscribePattern: got {describe(text)}, expected a Python regular expression; {error}"
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
        raise _invalid_partitions(text, str(error)) from None
    if not found:
        raise _invalid_partitions(text, "it contains none")
    return tuple(sorted(found))


def _number(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise ValueError(f"partition {raw!r}")
    return raw


def _invalid_partitions(text: str, problem: str) -> ConfigError:
    return ConfigError(
        f'assign: got {describe(text)}, expected partitions as in {{"topic":[0,1]}}; {problem:.120}'
    )
