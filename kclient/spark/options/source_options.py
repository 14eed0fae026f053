"""The options of the source, checked."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kclient.common.config_def import ConfigKey, choice, switch, text, whole_number
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import ConsumerConfig
from kclient.spark.offsets.position_spec import PositionSpec, parse_position
from kclient.spark.options.kafka_config import SOURCE_OWNED, checked_config, kafka_config
from kclient.spark.options.option_table import OptionTable, duration_ms
from kclient.spark.options.subscription import Subscription, parse_subscription

_log = logging.getLogger(__name__)

_SINCE_42 = "From Spark 4.2 on; refused before."

_ROWS: tuple[ConfigKey, ...] = (
    text("subscribe", None, "Topics to read, separated by commas."),
    text("subscribePattern", None, "Regular expression of Python's; topics whose name it matches."),
    text("assign", None, 'Partitions to read, as in {"topic":[0,1]}.'),
    text(
        "startingOffsets",
        None,
        "'earliest', 'latest' or offsets by partition as JSON, in which -2 is the start and -1 the "
        "end. Without it batches start at the earliest and streams at the latest.",
    ),
    whole_number(
        "startingTimestamp", None, "Start at the first record of this time or later, ms (epoch)."
    ),
    text(
        "startingOffsetsByTimestamp",
        None,
        "As startingTimestamp, by partition: a time for every one, as JSON.",
    ),
    choice(
        "startingOffsetsByTimestampStrategy",
        "error",
        {"error": "error", "latest": "latest"},
        "Where no record is as late as the starting time: fail, or start at the end.",
    ),
    text("endingOffsets", None, "Where a batch ends: 'latest' or offsets by partition as JSON."),
    whole_number(
        "endingTimestamp", None, "End before the first record of this time or later, ms (epoch)."
    ),
    text(
        "endingOffsetsByTimestamp",
        None,
        "As endingTimestamp, by partition: a time for every one, as JSON.",
    ),
    switch(
        "failOnDataLoss",
        True,  # noqa: FBT003 (a row of a table)
        "Whether a query fails where records are gone that it was to read; false logs how many.",
    ),
    whole_number(
        "kafkaConsumer.pollTimeoutMs",
        120_000,
        "How long a task waits for the next records of its range before it fails.",
        low=1,
    ),
    whole_number("fetchOffset.numRetries", 3, "How often a failed look-up of offsets is repeated."),
    whole_number(
        "fetchOffset.retryIntervalMs", 10, "Wait before a look-up of offsets is repeated."
    ),
    whole_number(
        "maxOffsetsPerTrigger", None, f"Most offsets of a micro-batch. {_SINCE_42}", low=1
    ),
    whole_number(
        "maxBytesPerTrigger",
        None,
        "About how many bytes of keys, values and headers a micro-batch has, judged by a sample. "
        f"{_SINCE_42}",
        low=1,
    ),
    whole_number(
        "minOffsetsPerTrigger", None, f"Offsets that a micro-batch waits for. {_SINCE_42}", low=1
    ),
    duration_ms(
        "maxTriggerDelay", 15 * 60_000, "How long a micro-batch waits for minOffsetsPerTrigger."
    ),
    whole_number(
        "minPartitions", None, "Tasks to split a read into, at least about so many.", low=1
    ),
    whole_number("maxRecordsPerPartition", None, "Most offsets of one task.", low=1),
    switch(
        "includeHeaders",
        False,  # noqa: FBT003 (a row of a table)
        "Whether there is a column of headers.",
    ),
    text(
        "groupId",
        None,
        "Group under which a stream commits how far it has come, one micro-batch late, for tools "
        "that watch the lag; nothing is read from these commits.",
    ),
    choice(
        "isolationLevel",
        None,
        {"read_committed": "read_committed", "read_uncommitted": "read_uncommitted"},
        "Whether records of open and aborted transactions are read. Default read_committed.",
    ),
    whole_number("arrowBatchRows", 65_536, "Most rows of one Arrow batch.", low=1),
)

_BATCH_ONLY = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_STREAM_ONLY = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "groupId")
# It names the groups that Spark's connector reads with; here there are none.
_IGNORED = ("groupIdPrefix",)
_OF_SINKS = ("topic", "delivery", "sinkId", "transactionalIdPrefix", "deliveryTimeoutMs")

SOURCE_TABLE = OptionTable(
    "the source", _ROWS, ignored=_IGNORED, elsewhere=dict.fromkeys(_OF_SINKS, "the sink")
)
"""Every option of the source."""


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """How much goes into a micro-batch.

    Attributes:
        max_offsets: Most offsets, None for no limit.
        max_bytes: About how many bytes at most, None for no limit.
        min_offsets: Offsets to wait for, None for none.
        max_delay_ms: How long to wait for these.
    """

    max_offsets: int | None
    max_bytes: int | None
    min_offsets: int | None
    max_delay_ms: int

    @property
    def named(self) -> str:
        """Name of a limit that is set, empty if none is."""
        names = {
            "maxOffsetsPerTrigger": self.max_offsets,
            "maxBytesPerTrigger": self.max_bytes,
            "minOffsetsPerTrigger": self.min_offsets,
        }
        return next((name for name, value in names.items() if value is not None), "")


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """What a task needs to know to read a range.

    Attributes:
        consumer: Configuration of its consumer, by dotted name; it may hold secrets.
        poll_timeout_ms: How long to wait for the next records.
        fail_on_data_loss: Whether to fail where records are gone.
        include_headers: Whether headers are wanted.
        batch_rows: Most rows of one Arrow batch.
    """

    consumer: Mapping[str, str] = field(repr=False)
    poll_timeout_ms: int
    fail_on_data_loss: bool
    include_headers: bool
    batch_rows: int

    def consumer_for(self, offsets: int) -> Mapping[str, str]:
        """Return the configuration of a consumer that reads so many offsets.

        What a large answer brings beyond a small range would be thrown away.
        """
        key = "max.partition.fetch.bytes"
        if offsets > _SMALL_RANGE or self.consumer[key] != CONSUMER_DEFAULTS[key]:
            return self.consumer
        return {**self.consumer, key: str(_SMALL_FETCH)}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A source's options after checking.

    Attributes:
        subscription: What is read.
        starting: Where it starts.
        ending: Where a batch ends.
        unmatched_is_latest: Whether a starting time after the last record means the end.
        limits: How much goes into a micro-batch.
        min_partitions: Tasks to split into, None as many as Kafka's partitions.
        max_records_per_partition: Most offsets of a task, None for no limit.
        group_id: Group to commit to, None for none.
        lookup_retries: How often a failed look-up of offsets is repeated.
        lookup_interval_ms: Wait between these.
        reading: What the tasks need.
    """

    subscription: Subscription
    starting: PositionSpec
    ending: PositionSpec
    unmatched_is_latest: bool
    limits: TriggerLimits
    min_partitions: int | None
    max_records_per_partition: int | None
    group_id: str | None
    lookup_retries: int
    lookup_interval_ms: int
    reading: ReadSettings

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None = None) -> "SourceOptions":
        """Check what the user gave.

        Args:
            options: Options as Spark hands them over.
            streaming: Whether a stream or a batch is read; None where that is not known yet.

        Raises:
            ConfigError: An option is unknown, missing or wrong, or two contradict each other.
        """
        values = SOURCE_TABLE.parse(options)
        if streaming is not None:
            _check_kind(options, streaming=streaming)
        default = PositionSpec.END if streaming else PositionSpec.START
        starting = parse_position(values, "starting", default)
        unmatched_is_latest = values["startingOffsetsByTimestampStrategy"] == "latest"
        if (
            streaming is False
            and not starting.by_time
            and starting.may_say_latest(unmatched_is_latest=False)
        ):
            raise ConfigError(
                f"{starting.what}: got the latest offsets, expected earlier ones; a batch that "
                "starts at the end reads nothing"
            )
        return cls(
            subscription=parse_subscription(values),
            starting=starting,
            ending=parse_position(values, "ending", PositionSpec.END),
            unmatched_is_latest=unmatched_is_latest,
            limits=TriggerLimits(
                values["maxOffsetsPerTrigger"],
                values["maxBytesPerTrigger"],
                values["minOffsetsPerTrigger"],
                values["maxTriggerDelay"],
            ),
            min_partitions=values["minPartitions"],
            max_records_per_partition=values["maxRecordsPerPartition"],
            group_id=values["groupId"],
            lookup_retries=values["fetchOffset.numRetries"],
            lookup_interval_ms=values["fetchOffset.retryIntervalMs"],
            reading=_reading(values, kafka_config(options, SOURCE_OWNED)),
        )


def _check_kind(options: Mapping[str, str], *, streaming: bool) -> None:
    given = {name.lower() for name in options}
    if streaming:
        wrong = [name for name in _BATCH_ONLY if name.lower() in given]
        if wrong:
            raise ConfigError(f"{wrong[0]}: got a value, expected none; a stream does not end")
        return
    for name in _STREAM_ONLY:
        if name.lower() in given:
            _log.warning("%s has no effect on a batch", name)


def _reading(values: Mapping[str, Any], kafka: dict[str, str]) -> ReadSettings:
    level = values["isolationLevel"]
    spelled = kafka.pop("isolation.level", None)
    if spelled is not None and level is not None and spelled.lower() != level:
        raise ConfigError(
            f"isolationLevel: got {level!r} here and {spelled!r} as kafka.isolation.level, "
            "expected one of them"
        )
    consumer = {
        **CONSUMER_DEFAULTS,
        **kafka,
        "isolation.level": level or spelled or "read_committed",
    }
    consumer |= _FIXED
    checked_config(consumer, ConsumerConfig.parse)
    return ReadSettings(
        consumer=consumer,
        poll_timeout_ms=values["kafkaConsumer.pollTimeoutMs"],
        fail_on_data_loss=values["failOnDataLoss"],
        include_headers=values["includeHeaders"],
        batch_rows=values["arrowBatchRows"],
    )


# A range is known to be there: few large answers, and none that waits for what comes after it.
CONSUMER_DEFAULTS: Mapping[str, str] = {
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": str(8 * 1024 * 1024),
}
_SMALL_RANGE = 8192
_SMALL_FETCH = 1024 * 1024
_FIXED: Mapping[str, str] = {"auto.offset.reset": "none", "allow.auto.create.topics": "false"}
