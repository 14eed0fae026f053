"""The second step: a streaming query from topic to topic, the statistics of each day."""

from datetime import timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from examples.flights_pipeline.figures import LATE_MINUTES
from kclient.spark.common.installed_spark import supports

SCHEMA = "id string, scheduled timestamp, carrier string, origin string, departure_delay int"
WINDOW = timedelta(days=1)
# Flights are written month by month. Within a month they come in any order, because tasks run side
# by side and failed ones again; so a flight may come a month later than one that left after it.
LATENESS = timedelta(days=31)
# In output mode append a window comes out when the watermark has passed its end: LATENESS after its
# last flight. (Output mode update, which sends each change, Spark keeps from Python data sources.)
# The last windows would wait for flights of the next year; a mark this much later than the last
# flight lets the watermark pass them. Its own window stays open for ever, so it is never counted.
END_MARK_AFTER = LATENESS + WINDOW + timedelta(minutes=1)


def stream_of_flights(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return the flights of the topic as a stream of rows."""
    reader = (
        spark.readStream.format("kclient")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )
    if supports("admission-control"):  # Spark 4.2 on: no micro-batch grows beyond that
        reader = reader.option("maxOffsetsPerTrigger", 50_000)
    flight = F.from_json(F.col("value").cast("string"), SCHEMA)
    return reader.load().select(flight.alias("flight")).select("flight.*")


def daily_statistics(flights: DataFrame) -> DataFrame:
    """Return a row for each day, carrier and airport, as key and value of a record."""
    delay = F.col("departure_delay")
    days = (
        flights.withWatermark("scheduled", _spark_interval(LATENESS))
        # A flight that was written twice is counted once.
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
    statistics: DataFrame, bootstrap: str, topic: str, checkpoint: str
) -> StreamingQuery:
    """Write the statistics to a topic as they come out, until the query is stopped."""
    return (
        statistics.writeStream.format("kclient")
        .outputMode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="1 second")
        .start()
    )


def _spark_interval(length: timedelta) -> str:
    return f"{length.total_seconds():.0f} seconds"
