"""The first step: Spark's tasks write the flights to a topic."""

import json
from datetime import timedelta

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from examples.flights_pipeline.kafka_access import KafkaAccess
from kclient import Producer
from kclient.spark import foreach_partition_sink


def write_flights(
    spark: SparkSession, flights: pd.DataFrame, kafka: KafkaAccess, topic: str
) -> None:
    """Write flights as JSON, with their id as the key.

    Each task returns when all its records are acknowledged. Spark retries a failed task, which
    duplicates its flights; `statistics` counts each id once.

    Raises:
        PySparkException: A task failed and has no attempts left.
    """
    table = pa.Table.from_pandas(flights, preserve_index=False)
    records = spark.createDataFrame(table).select(
        F.col("id").alias("key"), F.to_json(F.struct("*")).alias("value")
    )
    producer = {**kafka.options, "compression.type": "lz4", "linger.ms": 20}
    records.foreachPartition(foreach_partition_sink(producer, topic=topic))


def write_end_mark(last: pd.Timestamp, after: timedelta, kafka: KafkaAccess, topic: str) -> None:
    """Write a record that is not a flight and moves the watermark past the last window.

    Args:
        last: Scheduled time of the last flight.
        after: How much later the mark is.
        kafka: How to connect.
        topic: Topic of the flights.
    """
    mark = {"id": "end", "scheduled": (last + after).strftime("%Y-%m-%dT%H:%M:%SZ")}
    with Producer(kafka.client_options()) as producer:
        producer.send(topic, json.dumps(mark).encode(), key=b"end").result(timeout=30)
