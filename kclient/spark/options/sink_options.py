"""Options of the sink: their table and their validated values."""

import difflib
from collections.abc import Mapping
from typing import Final

from kclient.common.config_def import Config, ConfigType, describe
from kclient.common.config_keys import key, other_value, text, to_bool, whole_number
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import check_topic_name
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.spark.options.kafka_config import RESERVED_BY_SINK, checked_config, kafka_config
from kclient.spark.options.option_table import OptionTable, unsupported

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"

NEEDS_TRANSACTIONS: Final = (
    "exactly-once delivery needs transactions, which this version's producer does not have"
)


def check_delivery(mode: object) -> None:
    """Validate the option `delivery`, of the data source and the functions alike.

    Raises:
        ConfigError: The value is not ``at-least-once``.
    """
    if mode == AT_LEAST_ONCE:
        return
    if mode == EXACTLY_ONCE:
        raise ConfigError(
            f"delivery: got {EXACTLY_ONCE!r}, expected {AT_LEAST_ONCE!r}; Spark retries failed "
            "tasks, and only one transaction per task can hide the records of a failed attempt: "
            f"{NEEDS_TRANSACTIONS}"
        )
    hint = ""
    if isinstance(mode, str) and difflib.get_close_matches(
        mode.lower().replace("_", "-"), [AT_LEAST_ONCE], n=1
    ):
        hint = f"; did you mean {AT_LEAST_ONCE!r}?"
    raise ConfigError(f"delivery: got {describe(mode)}, expected {AT_LEAST_ONCE!r}{hint}")


def _delivery(raw: object) -> str:
    word = str(raw).strip().lower()
    check_delivery(word)
    return word


# Options of Spark itself, which it passes to the writer, too.
_IGNORED = ("checkpointLocation", "path", "queryName")
_SOURCE_OPTIONS = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupId",
    "isolationLevel",
)


class SinkOptions(Config):
    """The validated options of a sink.

    Attributes:
        producer: Configuration of the producers, by dotted name; may contain secrets.
    """

    producer: Mapping[str, str] = other_value({})
    topic: str | None = text(
        "topic", None, "Topic of every row; takes precedence over a column 'topic'."
    )
    include_headers: bool | None = key(
        "includeHeaders",
        ConfigType.BOOLEAN,
        to_bool,
        "True or False",
        None,
        "Whether the column 'headers' is sent; by default it is if there is one.",
    )
    delivery: str = key(
        "delivery",
        ConfigType.STRING,
        _delivery,
        f"'{AT_LEAST_ONCE}'",
        AT_LEAST_ONCE,
        "Delivery guarantee: if Spark retries a task, its rows are sent again.",
    )
    delivery_timeout_ms: int | None = whole_number(
        "deliveryTimeoutMs",
        None,
        "How long a task waits for its last acknowledgements; by default as long as the "
        "producer's delivery.timeout.ms allows.",
        low=1,
    )

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "SinkOptions":
        """Validate the options.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        options = SINK_TABLE.parse(given)
        if options.topic is not None:
            try:
                check_topic_name(options.topic)
            except KafkaError as error:
                raise ConfigError(str(error)) from None
        producer = kafka_config(given, RESERVED_BY_SINK)
        checked_config(producer, PRODUCER_CONFIG.parse)
        return options.with_values(producer=producer)


SINK_TABLE = OptionTable(
    "the sink",
    SinkOptions,
    [
        unsupported("exactlyOnceCommit", NEEDS_TRANSACTIONS),
        unsupported("sinkId", NEEDS_TRANSACTIONS),
        unsupported("transactionalIdPrefix", NEEDS_TRANSACTIONS),
    ],
    ignored=_IGNORED,
    elsewhere=dict.fromkeys(_SOURCE_OPTIONS, "the source"),
)
"""Every option of the sink."""
