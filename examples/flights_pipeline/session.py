"""The Java and the Spark session of the pipeline."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from examples.flights_pipeline.pipeline_settings import PipelineSettings
from examples.flights_pipeline.progress import Progress
from kclient.spark import prepare_local_session

_CORE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "FATAL",  # failures are raised; for more: --conf spark.log.level=INFO
    "spark.driver.memory": "1g",
}
_SQL = {
    "spark.sql.session.timeZone": "UTC",  # see flights.py
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


@contextmanager
def spark_session(settings: PipelineSettings, progress: Progress) -> Iterator[SparkSession]:
    """Create a session that is stopped at the end of the block.

    Raises:
        ConfigError: There is no Java that Spark can use; the message names remedies.
    """
    progress.say("Java", prepare(settings.master))
    builder = SparkSession.builder.master(settings.master).appName("flights pipeline")
    for key, value in {**_CORE, **settings.conf}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        progress.say("Spark", f"session on {settings.master}")
        yield spark
    finally:
        spark.stop()


def prepare(master: str) -> str:
    """Find a Java and set the environment for the session; return a summary."""
    chosen = prepare_local_session()
    if not master.startswith("local") and "SPARK_LOCAL_IP" in chosen.settings:
        del os.environ[
            "SPARK_LOCAL_IP"
        ]  # the executors of a cluster must be able to connect to this driver
    return str(chosen)


def separate(spark: SparkSession) -> SparkSession:
    """Return a new session of the same application with the pipeline's own SQL settings."""
    session = spark.newSession()
    for key, value in _SQL.items():
        session.conf.set(key, value)
    return session
