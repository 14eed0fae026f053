"""Start and end positions of a query, as the options give them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.common.offsets import EARLIEST, LATEST, parse_offsets


@dataclass(frozen=True, slots=True)
class PositionSpec:
    """A start or end position; it is resolved to offsets when the partitions are known.

    Attributes:
        option: Name of the option that gives it, for messages.
        everywhere: Offset of every partition, `EARLIEST` or `LATEST`; None if they differ.
        offsets: Offset by partition; `EARLIEST` and `LATEST` are allowed.
        timestamp_ms: Time for every partition, milliseconds since the epoch; None if they differ.
        timestamps: Time by partition.
    """

    option: str
    everywhere: int | None = None
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)

    START: ClassVar["PositionSpec"]
    END: ClassVar["PositionSpec"]

    @property
    def by_time(self) -> bool:
        """Whether the position is given by times."""
        return self.timestamp_ms is not None or bool(self.timestamps)

    @property
    def named(self) -> frozenset[TopicPartition]:
        """Partitions that the option lists, which must be all existing ones; empty if none."""
        return frozenset(self.offsets) | frozenset(self.timestamps)

    def times(self, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, int]:
        """Return the time to look up in each partition."""
        if self.timestamp_ms is not None:
            return dict.fromkeys(partitions, self.timestamp_ms)
        return {partition: self.timestamps[partition] for partition in partitions}

    def may_resolve_to_latest(self, *, unmatched_is_latest: bool) -> bool:
        """Return whether the position may resolve to the end of a partition, which moves.

        Args:
            unmatched_is_latest: Whether a time after the last record resolves to the end.
        """
        if self.by_time:
            return unmatched_is_latest
        return self.everywhere == LATEST or LATEST in self.offsets.values()


PositionSpec.START = PositionSpec("startingOffsets", everywhere=EARLIEST)
PositionSpec.END = PositionSpec("endingOffsets", everywhere=LATEST)


def parse_position(
    prefix: str,
    timestamp: int | None,
    offsets_by_timestamp: str | None,
    offsets: str | None,
    default: PositionSpec,
) -> PositionSpec:
    """Return the position that the three options with a prefix give.

    As in Spark's own connector, one time for all partitions takes precedence over times by
    partition, and these over offsets.

    Args:
        prefix: ``starting`` or ``ending``.
        timestamp: Option ``<prefix>Timestamp``.
        offsets_by_timestamp: Option ``<prefix>OffsetsByTimestamp``.
        offsets: Option ``<prefix>Offsets``.
        default: Position if none of the options is given.

    Raises:
        ConfigError: An option has a value of the wrong form.
    """
    if timestamp is not None:
        return PositionSpec(f"{prefix}Timestamp", timestamp_ms=timestamp)
    if offsets_by_timestamp is not None:
        option = f"{prefix}OffsetsByTimestamp"
        return PositionSpec(option, timestamps=parse_offsets(option, offsets_by_timestamp))
    if offsets is not None:
        return _by_offsets(f"{prefix}Offsets", offsets, starting=prefix == "starting")
    return default


def _by_offsets(option: str, text: str, *, starting: bool) -> PositionSpec:
    word = text.strip().lower()
    if word == "latest":
        return PositionSpec(option, everywhere=LATEST)
    if word == "earliest" and starting:
        return PositionSpec(option, everywhere=EARLIEST)
    if not word.startswith("{"):
        words = "'earliest', 'latest'" if starting else "'latest'"
        raise ConfigError(
            f'{option}: got {describe(text)}, expected {words} or JSON as in {{"topic":{{"0":23}}}}'
        )
    return PositionSpec(
        option, offsets=parse_offsets(option, text, lowest=EARLIEST if starting else LATEST)
    )
