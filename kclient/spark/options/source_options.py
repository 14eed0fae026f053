"""Options of the source: their table and their validated values."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from kclient.common.config_def import Config
from kclient.common.config_keys import choice, switch, text, whole_number
from kclient.common.errors import ConfigError
from kclient.consumer.consumer_config import CONSUMER_CONFIG
from kclient.spark.options.kafka_config import RESERVED_BY_SOURCE, checked_config, kafka_config
from kclient.spark.options.option_table import OptionTable, duration_ms
from kclient.spark.options.position_spec import PositionSpec, parse_position
from kclient.spark.options.subscription import Subscription, parse_subscription

_log = logging.getLogger(__name__)

_SINCE_42 = "From Spark 4.2 on; an error before."


class GivenOptions(Config):
    """The options of a source as they are given."""

    subscribe: str | None = text("subscribe", None, "Topics to read, separated by commas.")
    subscribe_pattern: str | None = text(
        "subscribePattern",
        None,
        "Python regular expression; topics whose whole name matches are read.",
    )
    assign: str | None = text("assign", None, 'Partitions to read, as in {"topic":[0,1]}.')
    starting_offsets: str | None = text(
        "startingOffsets",
        None,
        "'earliest', 'latest' or offsets by partition as JSON, in which -2 is the start and -1 the "
        "end. The default is 'earliest' for a batch and 'latest' for a stream.",
    )
    starting_timestamp: int | None = whole_number(
        "startingTimestamp", None, "Start at the first record of this time or later, ms (epoch)."
    )
    starting_offsets_by_timestamp: str | None = text(
        "startingOffsetsByTimestamp",
        None,
        "As startingTimestamp, by partition: a time for every one, as JSON.",
    )
    starting_offsets_by_timestamp_strategy: str = choice(
        "startingOffsetsByTimestampStrategy",
        "error",
        {"error": "error", "latest": "latest"},
        "If no record is as late as the starting time: fail, or start at the end.",
    )
    ending_offsets: str | None = text(
        "endingOffsets", None, "Where a batch ends: 'latest' or offsets by partition as JSON."
    )
    ending_timestamp: int | None = whole_number(
        "endingTimestamp", None, "End before the first record of this time or later, ms (epoch)."
    )
    ending_offsets_by_timestamp: str | None = text(
        "endingOffsetsByTimestamp",
        None,
        "As endingTimestamp, by partition: a time for every one, as JSON.",
    )
    fail_on_data_loss: bool = switch(
        "failOnDataLoss",
        "Whether a query fails if records that it should read are gone; false logs their number.",
        default=True,
    )
    kafka_consumer_poll_timeout_ms: int = whole_number(
        "kafkaConsumer.pollTimeoutMs",
        120_000,
        "How long a task waits for the next records of its range before it fails.",
        low=1,
    )
    fetch_offset_num_retries: int = whole_number(
        "fetchOffset.numRetries", 3, "How often a failed offset lookup is retried."
    )
    fetch_offset_retry_interval_ms: int = whole_number(
        "fetchOffset.retryIntervalMs", 10, "Wait before an offset lookup is retried."
    )
    max_offsets_per_trigger: int | None = whole_number(
        "maxOffsetsPerTrigger", None, f"Most offsets of a micro-batch. {_SINCE_42}", low=1
    )
    max_bytes_per_trigger: int | None = whole_number(
        "maxBytesPerTrigger",
        None,
        "About how many bytes of keys, values and headers a micro-batch has, by a sample. "
        f"{_SINCE_42}",
        low=1,
    )
    min_offsets_per_trigger: int | None = whole_number(
        "minOffsetsPerTrigger", None, f"Offsets that a micro-batch waits for. {_SINCE_42}", low=1
    )
    max_trigger_delay: int = duration_ms(
        "maxTriggerDelay", 15 * 60_000, "How long a micro-batch waits for minOffsetsPerTrigger."
    )
    min_partitions: int | None = whole_number(
        "minPartitions", None, "Approximate minimum number of tasks to split a read into.", low=1
    )
    max_records_per_partition: int | None = whole_number(
        "maxRecordsPerPartition", None, "Most offsets of one task.", low=1
    )
    include_headers: bool = switch(
        "includeHeaders",
        "Whether there is a column of headers.",
        default=False,
    )
    group_id: str | None = text(
        "groupId",
        None,
        "Group under which a stream commits its finished micro-batches for lag monitoring; the "
        "stream never reads these commits. Before Spark 4.2 they are one micro-batch late.",
    )
    isolation_level: str | None = choice(
        "isolationLevel",
        None,
        {"read_committed": "read_committed", "read_uncommitted": "read_uncommitted"},
        "Whether records of open and aborted transactions are read. Default read_committed.",
    )
    arrow_batch_rows: int = whole_number(
        "arrowBatchRows", 65_536, "Most rows of one Arrow batch.", low=1
    )


_BATCH_ONLY = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
_STREAM_ONLY = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "groupId")
# Prefix of the consumer groups of Spark's connector; this source has no groups.
_IGNORED = ("groupIdPrefix",)
_SINK_OPTIONS = ("topic", "delivery", "sinkId", "transactionalIdPrefix", "deliveryTimeoutMs")

SOURCE_TABLE = OptionTable(
    "the source", GivenOptions, ignored=_IGNORED, elsewhere=dict.fromkeys(_SINK_OPTIONS, "the sink")
)
"""Every option of the source."""


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """Limits of a micro-batch.

    Attributes:
        max_offsets: Maximum number of offsets, None for no limit.
        max_bytes: Approximate maximum number of bytes, None for no limit.
        min_offsets: Offsets to wait for, None for no wait.
        max_delay_ms: Longest wait for `min_offsets`.
    """

    max_offsets: int | None
    max_bytes: int | None
    min_offsets: int | None
    max_delay_ms: int

    @property
    def first_option(self) -> str:
        """Name of the first limit that is set, empty if none is."""
        names = {
            "maxOffsetsPerTrigger": self.max_offsets,
            "maxBytesPerTrigger": self.max_bytes,
            "minOffsetsPerTrigger": self.min_offsets,
        }
        return next((name for name, value in names.items() if value is not None), "")


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings of the tasks that read ranges.

    Attributes:
        consumer: Configuration of the consumer, by dotted name; may contain secrets.
        poll_timeout_ms: Longest wait for the next records.
        fail_on_data_loss: Whether to fail if records are gone.
        include_headers: Whether there is a column of headers.
        batch_rows: Maximum number of rows of an Arrow batch.
    """

    consumer: Mapping[str, str] = field(repr=False)
    poll_timeout_ms: int
    fail_on_data_loss: bool
    include_headers: bool
    batch_rows: int

    def consumer_for(self, offsets: int) -> Mapping[str, str]:
        """Return the configuration of a consumer that reads a range of `offsets` offsets.

        A small range gets a small fetch size: records after the range would be discarded.
        """
        key = "max.partition.fetch.bytes"
        if offsets > _SMALL_RANGE or self.consumer[key] != CONSUMER_DEFAULTS[key]:
            return self.consumer
        return {**self.consumer, key: str(_SMALL_FETCH)}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The validated options of a source.

    Attributes:
        subscription: Topics and partitions to read.
        starting: Start position.
        ending: End position of a batch.
        unmatched_is_latest: Whether a starting time after the last record resolves to the end.
        limits: Limits of a micro-batch.
        min_partitions: Tasks to split into, None for one per Kafka partition.
        max_records_per_partition: Maximum number of offsets of a task, None for no limit.
        group_id: Group to commit to, None for none.
        lookup_retries: How often a failed offset lookup is retried.
        lookup_interval_ms: Wait before a retry.
        reading: Settings of the tasks.
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

    @property
    def consumer(self) -> Mapping[str, str]:
        """Configuration of the consumers, by dotted name; may contain secrets."""
        return self.reading.consumer

    @property
    def fail_on_data_loss(self) -> bool:
        """Whether to fail if records are gone."""
        return self.reading.fail_on_data_loss

    @classmethod
    def parse(cls, options: Mapping[str, str], *, streaming: bool | None = None) -> "SourceOptions":
        """Validate the options.

        Args:
            options: Options as Spark passes them.
            streaming: Whether a stream or a batch is read; None if that is not known yet.

        Raises:
            ConfigError: An option is unknown, missing or wrong, or two are in conflict.
        """
        given = SOURCE_TABLE.parse(options)
        if streaming is not None:
            _check_applicable(options, streaming=streaming)
        default = PositionSpec.END if streaming else PositionSpec.START
        starting = parse_position(
            "starting",
            given.starting_timestamp,
            given.starting_offsets_by_timestamp,
            given.starting_offsets,
            default,
        )
        unmatched_is_latest = given.starting_offsets_by_timestamp_strategy == "latest"
        if (
            streaming is False
            and not starting.by_time
            and starting.may_resolve_to_latest(unmatched_is_latest=False)
        ):
            raise ConfigError(
                f"{starting.option}: got the latest offsets, expected earlier ones; a batch that "
                "starts at the end reads nothing"
            )
        return cls(
            subscription=parse_subscription(given.subscribe, given.subscribe_pattern, given.assign),
            starting=starting,
            ending=parse_position(
                "ending",
                given.ending_timestamp,
                given.ending_offsets_by_timestamp,
                given.ending_offsets,
                PositionSpec.END,
            ),
            unmatched_is_latest=unmatched_is_latest,
            limits=TriggerLimits(
                given.max_offsets_per_trigger,
                given.max_bytes_per_trigger,
                given.min_offsets_per_trigger,
                given.max_trigger_delay,
            ),
            min_partitions=given.min_partitions,
            max_records_per_partition=given.max_records_per_partition,
            group_id=given.group_id,
            lookup_retries=given.fetch_offset_num_retries,
            lookup_interval_ms=given.fetch_offset_retry_interval_ms,
            reading=_reading(given, kafka_config(options, RESERVED_BY_SOURCE)),
        )


def _check_applicable(options: Mapping[str, str], *, streaming: bool) -> None:
    given = {name.lower() for name in options}
    if streaming:
        wrong = [name for name in _BATCH_ONLY if name.lower() in given]
        if wrong:
            raise ConfigError(f"{wrong[0]}: got a value, expected none; a stream does not end")
        return
    for name in _STREAM_ONLY:
        if name.lower() in given:
            _log.warning("%s has no effect on a batch", name)


def _reading(given: GivenOptions, kafka: dict[str, str]) -> ReadSettings:
    level = given.isolation_level
    kafka_level = kafka.pop("isolation.level", None)
    if kafka_level is not None and level is not None and kafka_level.lower() != level:
        raise ConfigError(
            f"isolationLevel: got {level!r} here and {kafka_level!r} as kafka.isolation.level, "
            "expected one of them"
        )
    consumer = {
        **CONSUMER_DEFAULTS,
        **kafka,
        "isolation.level": level or kafka_level or "read_committed",
    }
    consumer |= _FIXED
    checked_config(consumer, CONSUMER_CONFIG.parse)
    return ReadSettings(
        consumer=consumer,
        poll_timeout_ms=given.kafka_consumer_poll_timeout_ms,
        fail_on_data_loss=given.fail_on_data_loss,
        include_headers=given.include_headers,
        batch_rows=given.arrow_batch_rows,
    )


# The records of a range are known to exist: large responses, and no wait for later records.
CONSUMER_DEFAULTS: Mapping[str, str] = {
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": str(8 * 1024 * 1024),
}
_SMALL_RANGE = 8192
_SMALL_FETCH = 1024 * 1024
_FIXED: Mapping[str, str] = {"auto.offset.reset": "none", "allow.auto.create.topics": "false"}
