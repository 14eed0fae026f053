"""Options of the sink: their table and their validated values."""

import difflib
from collections.abc import Mapping
from functools import partial
from typing import Final

from kclient.common.config_def import Config, ConfigType, describe
from kclient.common.config_keys import TextT, key, other_value, text, to_bool, whole_number
from kclient.common.errors import ConfigError, KafkaError
from kclient.common.types import check_topic_name
from kclient.producer.producer_config import PRODUCER_CONFIG
from kclient.spark.options.kafka_config import RESERVED_BY_SINK, checked_config, kafka_config
from kclient.spark.options.option_table import OptionTable

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
DEFAULT_PREFIX: Final = "kclient-spark"
"""Default of the option ``transactionalIdPrefix``."""

FOREACH_BATCH_ID: Final = "kclientForeachBatchId"
"""Internal option by which `foreach_batch_sink` passes the id of the micro-batch."""


_MODES: Final = (AT_LEAST_ONCE, EXACTLY_ONCE)
_MAX_ID: Final = 200
_ID_FORM: Final = f"a text of 1 to {_MAX_ID} printable characters"
_EXPECTED: Final = " or ".join(map(repr, _MODES))


def check_delivery(mode: object) -> None:
    """Validate the option `delivery`, of the data source and the functions alike.

    Raises:
        ConfigError: The value is neither ``at-least-once`` nor ``exactly-once``.
    """
    if mode in _MODES:
        return
    hint = ""
    if isinstance(mode, str):
        near = difflib.get_close_matches(mode.lower().replace("_", "-"), _MODES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigError(f"delivery: got {describe(mode)}, expected {_EXPECTED}{hint}")


def check_id(option: str, value: object) -> str:
    """Validate an option that is a part of transactional ids.

    Args:
        option: Name of the option, for errors.
        value: Its value.

    Raises:
        ConfigError: It is not a short text that can be printed.
    """
    if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _MAX_ID:
        return value
    raise ConfigError(
        f"{option}: got {describe(value)}, expected {_ID_FORM}; it is part of transactional ids"
    )


def _id(name: str, default: TextT, doc: str) -> TextT:
    return key(name, ConfigType.STRING, partial(check_id, name), _ID_FORM, default, doc)


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
        _EXPECTED,
        AT_LEAST_ONCE,
        "Delivery guarantee: if Spark repeats a task, its rows are sent again, or, with "
        "'exactly-once', they are only if no earlier attempt has committed them.",
    )
    delivery_timeout_ms: int | None = whole_number(
        "deliveryTimeoutMs",
        None,
        "How long a task waits for its last acknowledgements; by default as long as the "
        "producer's delivery.timeout.ms allows.",
        low=1,
    )

    sink_id: str | None = _id(
        "sinkId",
        None,
        "Id of a stream for exactly-once delivery, which no other query may use; by default the id "
        "of the query, which is stored in its checkpoint.",
    )
    transactional_id_prefix: str = _id(
        "transactionalIdPrefix",
        DEFAULT_PREFIX,
        "Beginning of the transactional ids and of the groups of exactly-once delivery, for ACLs.",
    )
    write_id: str | None = _id(
        "writeId",
        None,
        "Id of a table's write for exactly-once delivery: a job that is repeated with it skips the "
        "Spark partitions that are committed.",
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
    ignored=_IGNORED,
    elsewhere=dict.fromkeys(_SOURCE_OPTIONS, "the source"),
)
"""Every option of the sink."""
