"""Where a query starts or ends, as the user said it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from kclient.common.config_def import describe
from kclient.common.errors import ConfigError
from kclient.common.types import TopicPartition
from kclient.spark.offsets.offset_json import EARLIEST, LATEST, parse_offsets


@dataclass(frozen=True, slots=True)
class PositionSpec:
    """One way to say where; offsets and times are resolved when the partitions are known.

    Attributes:
        what: Option that said it, for messages.
        everywhere: Offset of every partition: `EARLIEST` or `LATEST`; None where it differs.
        offsets: Offset by partition, negative ones as above.
        timestamp_ms: Time for every partition, milliseconds since the epoch; None where it differs.
        timestamps: Time by partition.
    """

    what: str
    everywhere: int | None = None
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int | None = None
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)

    START: ClassVar["PositionSpec"]
    END: ClassVar["PositionSpec"]

    @property
    def by_time(self) -> bool:
        """Whether times are given."""
        return self.timestamp_ms is not None or bool(self.timestamps)

    @property
    def named(self) -> frozenset[TopicPartition]:
        """Partitions that are named, which must be all there are; empty if none has to be."""
        return frozenset(self.offsets) | frozenset(self.timestamps)

    def times(self, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, int]:
        """Return the time to look up in each partition."""
        if self.timestamp_ms is not None:
            return dict.fromkeys(partitions, self.timestamp_ms)
        return {partition: self.timestamps[partition] for partition in partitions}

    def may_say_latest(self, *, unmatched_is_latest: bool) -> bool:
        """Return whether some partition's place may be its end, which moves on.

        Args:
            unmatched_is_latest: Whether a time after the last record means the end.
        """
        if self.by_time:
            return unmatched_is_latest
        return self.everywhere == LATEST or LATEST in self.offsets.values()


PositionSpec.START = PositionSpec("startingOffsets", everywhere=EARLIEST)
PositionSpec.END = PositionSpec("endingOffsets", everywhere=LATEST)


def parse_position(
    values: Mapping[str, object], prefix: str, default: PositionSpec
) -> PositionSpec:
    """Return what the three options with a prefix say.

    A time for all wins over times, and these over offsets, as in Spark's own connector.

    Args:
        values: Options by name, None where not given.
        prefix: ``starting`` or ``ending``.
        default: What holds where none is given.

    Raises:
        ConfigError: One has a value of the wrong form.
    """
    single, several, offsets = (
        f"{prefix}{rest}" for rest in ("Timestamp", "OffsetsByTimestamp", "Offsets")
    )
    timestamp = values[single]
    if isinstance(timestamp, int):
        return PositionSpec(single, timestamp_ms=timestamp)
    if (text := values[several]) is not None:
        return PositionSpec(several, timestamps=parse_offsets(several, str(text)))
    if (text := values[offsets]) is not None:
        return _by_offsets(offsets, str(text), starting=prefix == "starting")
    return default


def _by_offsets(what: str, text: str, *, starting: bool) -> PositionSpec:
    word = text.strip().lower()
    if word == "latest":
        return PositionSpec(what, everywhere=LATEST)
    if word == "earliest" and starting:
        return PositionSpec(what, everywhere=EARLIEST)
    if not word.startswith("{"):
        words = "'earliest', 'latest'" if starting else "'latest'"
        raise ConfigError(
            f'{what}: got {describe(text)}, expected {words} or JSON as in {{"topic":{{"0":23}}}}'
        )
    return PositionSpec(
        what, offsets=parse_offsets(what, text, lowest=EARLIEST if starting else LATEST)
    )
