"""df.foreachPartition(foreach_partition_sink(...)), with real workers and a real socket."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (its customary name)

from kclient.spark import foreach_partition_sink
from tests.support.desk import Desk, place, read


def test_every_row_of_every_partition_arrives_with_key_and_value(
    spark: SparkSession, desk: Desk
) -> None:
    topic = desk.topic(3)
    rows = spark.range(0, 1_000, 1, 4).select(
        (F.col("id") % 7).cast("string").alias("key"), F.col("id").cast("string").alias("value")
    )

    rows.foreachPartition(
        foreach_partition_sink({"bootstrap.servers": desk.bootstrap}, topic=topic)
    )

    consumer = desk.consumer()
    consumer.assign([place(topic, partition) for partition in range(3)])
    found = read(consumer, 1_000)
    assert sorted(int(record.value or b"-1") for record in found) == list(range(1_000))
    assert all(int(record.key or b"-1") == int(record.value or b"-1") % 7 for record in found)
