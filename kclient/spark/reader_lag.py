"""Lag of streaming queries and consumer groups: offsets that are still to be read."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kclient.admin.admin_client import AdminClient
from kclient.common.config_def import describe
from kclient.common.errors import ConfigError, IllegalStateError
from kclient.common.types import TopicPartition
from kclient.consumer.consumer import Consumer
from kclient.spark.common.installed_spark import require
from kclient.spark.common.offsets import from_offset
from kclient.spark.options.kafka_config import admin_config
from kclient.spark.options.secret_options import resolved

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Offsets = Mapping[TopicPartition, int]

_DEFAULTS: Final = {"isolation.level": "read_committed"}  # as in the source


class Lag(dict[TopicPartition, int]):
    """Offsets that are still to be read, by partition.

    After transactions and compaction, some of these offsets have no record.
    """

    @property
    def total(self) -> int:
        """Sum over all partitions."""
        return sum(self.values())

    def __str__(self) -> str:
        partitions = ", ".join(
            f"{topic}-{number}: {behind}" for (topic, number), behind in self.items()
        )
        return f"{self.total} behind ({partitions or 'no partitions'})"


def lag(query: "StreamingQuery", conf: Mapping[str, object] | None = None) -> Lag:
    """Return the lag of a streaming query, by its last progress.

    The progress has the end of the last micro-batch and, from Spark 4.2 on, the ends of the
    partitions at that time. With `conf`, the current ends are fetched from the brokers instead,
    which works with every version.

    All sources of the query that read Kafka count: those of ``format("kclient")`` and of Spark's
    own connector. If two read the same partition, the larger lag counts.

    Args:
        query: The query.
        conf: Options of a consumer by dotted name, such as ``bootstrap.servers``; None uses the
            progress.

    Raises:
        IllegalStateError: The query has not completed a micro-batch yet.
        UnsupportedSparkVersionError: Spark is older than 4.2 and `conf` is None.
        ConfigError: No source of the query reads Kafka, or an option is wrong.
        KafkaError: The request to the brokers failed.
    """
    if conf is None:
        require("report-latest-offset", "lag(query) without conf")
    progress = query.lastProgress
    if progress is None:
        raise IllegalStateError(
            "lag: the query has not completed a micro-batch yet; try again later"
        )
    sources: list[dict[str, Any]] = json.loads(progress.json)["sources"]
    read = [(ends, source) for source in sources if (ends := _offsets(source["endOffset"]))]
    if not read:
        raise ConfigError(
            f"lag: got a query that reads {describe(_names(sources))}, expected one with a source "
            'format("kclient") that has reported its offsets'
        )
    found: dict[TopicPartition, int] = {}
    for ends, source in read:
        latest = _offsets(source.get("latestOffset")) if conf is None else _ends(ends, conf)
        for partition, behind in _behind(ends, latest or {}).items():
            found[partition] = max(behind, found.get(partition, 0))
    return Lag(sorted(found.items()))


def group_lag(conf: Mapping[str, object], group_id: str) -> Lag:
    """Return the lag of a consumer group by its committed offsets.

    With the option ``groupId``, a stream commits a finished micro-batch to that group at the next
    trigger, before Spark 4.2 when it plans the next micro-batch that has records.

    Args:
        conf: Options of a consumer by dotted name, such as ``bootstrap.servers``.
        group_id: The group.

    Returns:
        Offsets behind by partition; empty if the group has no commits.

    Raises:
        ConfigError: An option is wrong.
        KafkaError: The request to the brokers failed.
    """
    with AdminClient(admin_config(conf)) as client:
        committed = client.list_consumer_group_offsets(group_id).raise_for_errors()
    at = {partition: entry.offset for partition, entry in sorted(committed.items())}
    return Lag(_behind(at, _ends(at, conf)))


def _behind(at: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """Return the differences; new partitions of `ends` are left out, their start is unknown."""
    return {one: max(0, ends[one] - offset) for one, offset in at.items() if one in ends}


def _ends(partitions: Offsets, conf: Mapping[str, object]) -> Offsets:
    if not partitions:
        return {}
    with Consumer({**_DEFAULTS, **resolved(conf)}) as consumer:
        return consumer.end_offsets(list(partitions))


def _offsets(reported: object) -> Offsets | None:
    """Return the offsets in a progress; None if they are those of another kind of source."""
    try:
        # Spark Connect passes them as text, before 4.2 as the repr of a dict.
        found = json.loads(reported.replace("'", '"')) if isinstance(reported, str) else reported
        return from_offset(found) if isinstance(found, Mapping) else None
    except (ValueError, ConfigError):
        return None


def _names(sources: list[dict[str, Any]]) -> str:
    return ", ".join(str(source.get("description", "")) for source in sources)
