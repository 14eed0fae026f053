"""The first step: flights become records of a topic, in Spark's tasks."""

import json
from datetime import timedelta

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kclient import Producer
from kclient.spark import foreach_partition_sink


def write_flights(spark: SparkSession, flights: pd.DataFrame, bootstrap: str, topic: str) -> None:
    """Write flights as JSON, with their id as the key.

    Each task returns when all of its records are acknowledged. A task that fails is run again by
    Spark, and then its flights are there twice: see `statistics`, which counts each id once.

    Raises:
        PySparkException: A flight was not written, in none of a task's attempts.
    """
    table = pa.Table.from_pandas(flights, preserve_index=False)
    records = spark.createDataFrame(table).select(
        F.col("id").alias("key"), F.to_json(F.struct("*")).alias("value")
    )
    producer = {"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 20}
    records.foreachPartition(foreach_partition_sink(producer, topic=topic))


def write_end_mark(last: pd.Timestamp, after: timedelta, bootstrap: str, topic: str) -> None:
    """Write a record that is no flight and stands for the time when nothing more can come.

    Args:
        last: When the last flight was scheduled.
        after: How much later the mark is.
        bootstrap: Kafka's address.
        topic: Topic of the flights.
    """
    mark = {"id": "end", "scheduled": (last + after).strftime("%Y-%m-%dT%H:%M:%SZ")}
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, json.dumps(mark).encode(), key=b"end").result(timeout=30)
