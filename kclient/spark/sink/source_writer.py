"""What the writers of the data source have in common."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kclient.spark.options import SinkOptions
from kclient.spark.sink.column_plan import IF_PRESENT, Column, ColumnPlan, ColumnWishes
from kclient.spark.sink.delivery import Delivery
from kclient.spark.sink.delivery_modes import delivery_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FOREACH_BATCH_ID: Final = "kclientForeachBatchId"
"""Option by which `foreach_batch_sink` passes the micro-batch's number on; it is not the user's."""

_HEADERS: Final[Mapping[bool | None, Column]] = {None: IF_PRESENT, True: "headers", False: None}


class WriterPlan(NamedTuple):
    """What a writer of the data source is made from.

    Attributes:
        columns: What the columns mean.
        delivery: What is promised.
        batch_id: Number of the micro-batch, where `foreach_batch_sink` writes it.
    """

    columns: ColumnPlan
    delivery: Delivery
    batch_id: int | None


def planned(options: Mapping[str, str], schema: "StructType") -> WriterPlan:
    """Return what the options and the schema of a data source say.

    Raises:
        ConfigError: One of them is wrong.
    """
    given = {name: value for name, value in options.items() if not _is_batch_id(name)}
    batch_ids = [int(value) for name, value in options.items() if _is_batch_id(name)]
    settings = SinkOptions.parse(given)
    timeout_ms = settings.delivery_timeout_ms
    delivery = delivery_of(
        settings.delivery, settings.producer, None if timeout_ms is None else timeout_ms / 1000
    )
    wishes = ColumnWishes(topic=settings.topic, headers=_HEADERS[settings.include_headers])
    columns = wishes.checked_plan(schema.fields)
    return WriterPlan(columns, delivery, batch_ids[0] if batch_ids else None)


def _is_batch_id(name: str) -> bool:
    return name.lower() == FOREACH_BATCH_ID.lower()
