"""The options of the sink, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kclient.common.config_def import ConfigKey, switch, text, whole_number
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import check_topic_name
from kclient.producer.producer_config import ProducerConfig
from kclient.spark.options.delivery_option import (
    AT_LEAST_ONCE,
    NEEDS_TRANSACTIONS,
    check_delivery,
)
from kclient.spark.options.kafka_config import SINK_OWNED, checked_config, kafka_config
from kclient.spark.options.option_table import OptionTable, unavailable


def _delivery(raw: object) -> str:
    word = str(raw).strip().lower()
    check_delivery(word)
    return word


_ROWS: tuple[ConfigKey, ...] = (
    text("topic", None, "Topic of every row; it wins over a column 'topic'."),
    ConfigKey(
        "includeHeaders",
        switch("includeHeaders", False, "").convert,  # noqa: FBT003 (its default is not used)
        "True or False",
        None,
        "Whether the column 'headers' is sent; left out, it is where there is one.",
    ),
    ConfigKey(
        "delivery",
        _delivery,
        f"'{AT_LEAST_ONCE}'",
        AT_LEAST_ONCE,
        "What holds where Spark repeats a task: its rows are sent again.",
    ),
    whole_number(
        "deliveryTimeoutMs",
        None,
        "How long a task waits for its last acknowledgements. Without it, as long as the "
        "producer's delivery.timeout.ms lets records wait.",
        low=1,
    ),
    unavailable("exactlyOnceCommit", NEEDS_TRANSACTIONS),
    unavailable("sinkId", NEEDS_TRANSACTIONS),
    unavailable("transactionalIdPrefix", NEEDS_TRANSACTIONS),
)

# Spark's own, which it passes on to the writer.
_IGNORED = ("checkpointLocation", "path", "queryName")
_OF_SOURCES = (
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

SINK_TABLE = OptionTable(
    "the sink", _ROWS, ignored=_IGNORED, elsewhere=dict.fromkeys(_OF_SOURCES, "the source")
)
"""Every option of the sink."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """A sink's options after checking.

    Attributes:
        producer: Configuration of the producers, by dotted name; it may hold secrets.
        topic: Topic of every row, None where a column names it.
        include_headers: Whether headers are sent, None for where there are some.
        delivery: ``at-least-once``.
        delivery_timeout_ms: How long a task waits for the delivery of its rows, None for as long
            as the producer tries.
    """

    producer: Mapping[str, str] = field(repr=False)
    topic: str | None
    include_headers: bool | None
    delivery: str
    delivery_timeout_ms: int | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "SinkOptions":
        """Check what the user gave.

        Raises:
            ConfigError: An option is unknown, missing or wrong.
        """
        values = SINK_TABLE.parse(options)
        topic: str | None = values["topic"]
        if topic is not None:
            try:
                check_topic_name(topic)
            except KafkaError as error:
                raise ConfigError(str(error)) from None
        producer = kafka_config(options, SINK_OWNED)
        checked_config(producer, ProducerConfig.parse)
        return cls(
            producer=producer,
            topic=topic,
            include_headers=values["includeHeaders"],
            delivery=values["delivery"],
            delivery_timeout_ms=values["deliveryTimeoutMs"],
        )
