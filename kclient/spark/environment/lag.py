"""How far readers are behind the ends of what they read."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kclient.admin.admin_client import AdminClient
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.spark.offsets.offset_json import from_offset
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.spark_version import require

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Offsets = Mapping[TopicPartition, int]

_DEFAULTS: Final = {"isolation.level": "read_committed"}  # as the source's


class Lag(dict[TopicPartition, int]):
    """Offsets that are still to be read, by partition.

    Where transactions ran or a log was compacted, some of these offsets hold no record.
    """

    @property
    def total(self) -> int:
        """Of all partitions together."""
        return sum(self.values())

    def __str__(self) -> str:
        told = ", ".join(f"{topic}-{number}: {behind}" for (topic, number), behind in self.items())
        return f"{self.total} behind ({told or 'no partitions'})"


def lag(query: "StreamingQuery", conf: Mapping[str, object] | None = None) -> Lag:
    """Return how far a streaming query is behind, by its last progress.

    The progress tells where the last micro-batch ended and, from Spark 4.2 on, where the partitions
    ended then. With `conf`, the brokers are asked for the ends instead, which works with every
    version and is of this moment.

    All sources of the query that read Kafka count: those of ``format("kclient")`` and of Spark's
    own connector. Where two read the same partition, the one further behind counts.

    Args:
        query: The query.
        conf: Options of a consumer by dotted name, such as ``bootstrap.servers``; None believes the
            progress.

    Raises:
        IllegalStateError: The query has not told of a micro-batch yet.
        UnsupportedSparkVersionError: Spark is older than 4.2 and `conf` is None.
        ConfigError: No source of the query reads Kafka, or an option is wrong.
        KafkaError: The brokers cannot be asked.
    """
    if conf is None:
        require("report-latest-offset", "lag(query) without conf")
    progress = query.lastProgress
    if progress is None:
        raise IllegalStateError("lag: the query has not finished a micro-batch yet; ask again")
    sources: list[dict[str, Any]] = json.loads(progress.json)["sources"]
    read = [(ends, source) for source in sources if (ends := _offsets(source["endOffset"]))]
    if not read:
        raise ConfigError(
            f"lag: got a query that reads {describe(_names(sources))}, expected one whose source "
            'is format("kclient") and has told where it is'
        )
    found: dict[TopicPartition, int] = {}
    for ends, source in read:
        latest = _offsets(source.get("latestOffset")) if conf is None else _ends(ends, conf)
        for partition, behind in _behind(ends, latest or {}).items():
            found[partition] = max(behind, found.get(partition, 0))
    return Lag(sorted(found.items()))


def group_lag(conf: Mapping[str, object], group_id: str) -> Lag:
    """Return how far the commits of a group are behind, as any tool that watches groups sees it.

    With the source's option ``groupId``, a stream commits under that name. These commits are one
    micro-batch late, and that of the last one before a stop is missing.

    Args:
        conf: Options of a consumer by dotted name, such as ``bootstrap.servers``.
        group_id: The group.

    Returns:
        Offsets behind by partition; empty where the group has committed nothing.

    Raises:
        ConfigError: An option is wrong.
        KafkaError: The brokers cannot be asked.
    """
    with AdminClient(admin_config(conf)) as client:
        committed = client.list_consumer_group_offsets(group_id)
    at = {partition: place.offset for partition, place in sorted(committed.items())}
    return Lag(_behind(at, _ends(at, conf)))


def _behind(at: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """Return the differences; partitions that are new in `ends` are not known to begin at 0."""
    return {one: max(0, ends[one] - offset) for one, offset in at.items() if one in ends}


def _ends(partitions: Offsets, conf: Mapping[str, object]) -> Offsets:
    if not partitions:
        return {}
    with Consumer({**_DEFAULTS, **conf}) as consumer:
        return consumer.end_offsets(list(partitions))


def _offsets(told: object) -> Offsets | None:
    """Return the offsets in a progress; None where they are another source's."""
    try:
        # Over Spark Connect they come as text, and below 4.2 in Python's words for it.
        found = json.loads(told.replace("'", '"')) if isinstance(told, str) else told
        return from_offset(found) if isinstance(found, Mapping) else None
    except (ValueError, ConfigError):
        return None


def _names(sources: list[dict[str, Any]]) -> str:
    return ", ".join(str(source.get("description", "")) for source in sources)
