"""The second step: a streaming query from topic to topic, the statistics of each day."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from examples.flights_pipeline.figures import LATE_MINUTES
from examples.flights_pipeline.kafka_access import KafkaAccess
from kclient.spark.common.installed_spark import supports

SCHEMA = "id string, scheduled timestamp, carrier string, origin string, departure_delay int"
WINDOW = timedelta(days=1)
# Flights are written month by month. Within a month their order is random, because tasks run
# concurrently and failed ones are retried: a flight may arrive a month after a later flight.
LATENESS = timedelta(days=31)
# In output mode append a window is written when the watermark has passed its end, LATENESS after
# its last flight. (Spark offers no output mode update to Python data sources.) The last windows
# would wait for flights of the next year; a mark this much later than the last flight moves the
# watermark past them. The window of the mark is never closed, so the mark is never counted.
END_MARK_AFTER = LATENESS + WINDOW + timedelta(minutes=1)


def stream_of_flights(spark: SparkSession, kafka: KafkaAccess, topic: str, group: str) -> DataFrame:
    """Return the topic of the flights as a stream of rows.

    Args:
        spark: The session.
        kafka: How to connect.
        topic: Topic of the flights.
        group: Group to which the query commits its progress, for monitoring.
    """
    reader = (
        spark.readStream.format("kclient")
        .options(**kafka.spark_options())
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("groupId", group)
    )
    if supports("admission-control"):  # from Spark 4.2 on
        reader = reader.option("maxOffsetsPerTrigger", 50_000)
    flight = F.from_json(F.col("value").cast("string"), SCHEMA)
    return reader.load().select(flight.alias("flight")).select("flight.*")


def daily_statistics(flights: DataFrame) -> DataFrame:
    """Return a row for each day, carrier and airport, as key and value of a record."""
    delay = F.col("departure_delay")
    days = (
        flights.withWatermark("scheduled", _spark_interval(LATENESS))
        # A duplicate flight is counted once.
        .dropDuplicatesWithinWatermark(["id"])
        .groupBy(F.window("scheduled", _spark_interval(WINDOW)), "carrier", "origin")
        .agg(
            F.count("*").alias("flights"),
            F.count_if(delay.isNull()).alias("cancelled"),
            F.count_if(delay > LATE_MINUTES).alias("late"),
            F.coalesce(F.sum(delay), F.lit(0)).alias("delay_sum"),
            F.max(delay).alias("delay_max"),
            F.avg(delay).alias("delay_mean"),
        )
        .withColumn("day", F.date_format("window.start", "yyyy-MM-dd"))
        .drop("window")
    )
    key = F.concat_ws(" ", "day", "carrier", "origin")
    return days.select(key.alias("key"), F.to_json(F.struct("*")).alias("value"))


def start_query(
    statistics: DataFrame, kafka: KafkaAccess, topic: str, checkpoint: str
) -> StreamingQuery:
    """Start the query that writes the statistics to a topic."""
    return (
        statistics.writeStream.format("kclient")
        .outputMode("append")
        .options(**kafka.spark_options())
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="1 second")
        .start()
    )


def _spark_interval(length: timedelta) -> str:
    return f"{length.total_seconds():.0f} seconds"
