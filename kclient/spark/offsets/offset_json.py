"""Offsets in the form of Spark's own connector: ``{"topic": {"0": 5, "1": 7}}``.

Spark compares the offsets of a stream as text, so there is one order: topics by name, partitions
by number.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import TopicPartition, check_topic_name

EARLIEST = -2
"""Stands for the first offset of a partition."""

LATEST = -1
"""Stands for the end of a partition."""

Offset: TypeAlias = dict[str, dict[str, int]]
"""What Spark stores."""

_MAX = 2**63 - 1


def to_offset(offsets: Mapping[TopicPartition, int]) -> Offset:
    """Return what Spark stores for these offsets."""
    found: Offset = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_offset(stored: Mapping[str, object]) -> dict[TopicPartition, int]:
    """Return the offsets that Spark stored.

    Raises:
        ConfigError: They are not of this source.
    """
    try:
        return _read(dict(stored), 0) if stored else {}
    except (ValueError, TypeError, KafkaError) as error:
        raise ConfigError(
            f"checkpoint: got offsets {describe(stored)}, expected those of a Kafka source; "
            f"{error!s:.120}"
        ) from None


def parse_offsets(what: str, text: str, *, lowest: int = 0) -> dict[TopicPartition, int]:
    """Return the numbers by partition that a user wrote.

    Args:
        what: Name of the option, for the error.
        text: JSON as in the module's description.
        lowest: Lowest number allowed: `EARLIEST`, `LATEST` or 0.

    Raises:
        ConfigError: It has another form.
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
        raise TypeError("it is no object")
    found: dict[TopicPartition, int] = {}
    for topic, partitions in parsed.items():
        if not isinstance(partitions, dict):
            raise TypeError(f"of {topic!r} it has no object")
        for partition, number in partitions.items():
            if not (partition.isascii() and partition.isdigit()):
                raise ValueError(f"partition {partition!r}")
            if isinstance(number, bool) or not isinstance(number, int):
                raise TypeError(f"of {topic}-{partition} it has {number!r}")
            if not lowest <= number <= _MAX:
                raise ValueError(f"of {topic}-{partition} it has {number}")
            found[TopicPartition(check_topic_name(topic), int(partition))] = number
    if not found:
        raise ValueError("it names no partition")
    return found
