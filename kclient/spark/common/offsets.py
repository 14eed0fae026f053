"""Offsets as Spark's own connector writes them, ``{"topic": {"0": 5, "1": 7}}``, and offset ranges.

Spark compares the offsets of a stream as text, so their order is fixed: topics by name, partitions
by number.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition, check_topic_name

EARLIEST = -2
"""Denotes the first offset of a partition."""

LATEST = -1
"""Denotes the end offset of a partition."""

Offset: TypeAlias = dict[str, dict[str, int]]
"""Offsets in the form that Spark stores."""

_MAX = 2**63 - 1


class Span(NamedTuple):
    """Offsets of one partition, from `start` up to, not including, `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Number of offsets; there may be fewer records."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition}[{self.start}:{self.end}]"


def to_offset(offsets: Mapping[TopicPartition, int]) -> Offset:
    """Convert offsets to the form that Spark stores."""
    found: Offset = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_offset(stored: Mapping[str, object]) -> dict[TopicPartition, int]:
    """Convert offsets from the form that Spark stores.

    Raises:
        ConfigError: The offsets are not those of a Kafka source.
    """
    try:
        return _read(dict(stored), 0) if stored else {}
    except (ValueError, TypeError, KafkaError) as error:
        raise ConfigError(
            f"checkpoint: got offsets {describe(stored)}, expected those of a Kafka source; "
            f"{error!s:.120}"
        ) from None


def parse_offsets(what: str, text: str, *, lowest: int = 0) -> dict[TopicPartition, int]:
    """Parse offsets or times by partition from the value of an option.

    Args:
        what: Name of the option, for the message.
        text: JSON as in the module's docstring.
        lowest: Lowest number allowed: `EARLIEST`, `LATEST` or 0.

    Raises:
        ConfigError: The text has another form.
    """
    try:
        return _read(json.loads(text), lowest)
    except (ValueError, TypeError, KafkaError) as error:
        special = {EARLIEST: ", -1 for the end, -2 for the start", LATEST: ", -1 for the end"}
        raise ConfigError(
            f"{what}: got {describe(text)}, expected JSON as in "
            f'{{"topic":{{"0":23}}}}{special.get(lowest, "")}; {error!s:.120}'
        ) from None


def _read(parsed: object, lowest: int) -> dict[TopicPartition, int]:
    if not isinstance(parsed, dict):
        raise TypeError("it is not an object")
    found: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if not isinstance(partitions, dict):
            raise TypeError(f"the value of {topic!r} is not an object")
        for partition, number in partitions.items():
            if not (partition.isascii() and partition.isdigit()):
                raise ValueError(f"partition {partition!r}")
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"{topic}-{partition} has {number!r}")
            if not lowest <= number <= _MAX:
                raise ValueError(f"{topic}-{partition} has {number}")
            found[TopicPartition(check_topic_name(topic), int(partition))] = number
    if not found:
        raise ValueError("it contains no partition")
    return found
