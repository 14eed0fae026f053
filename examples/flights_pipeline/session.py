"""Java and Spark: what the pipeline runs on."""

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
    "spark.log.level": "FATAL",  # what fails is raised; --conf spark.log.level=INFO tells the rest
    "spark.driver.memory": "1g",
}
_SQL = {
    "spark.sql.session.timeZone": "UTC",  # see flights.py
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}


@contextmanager
def spark_session(settings: PipelineSettings, progress: Progress) -> Iterator[SparkSession]:
    """Make a session that is stopped at the end of the block.

    Raises:
        ConfigError: There is no Java that Spark can run on; the text says how to get one.
    """
    progress.say("Java", f"Spark needs Java and uses: {prepare(settings.master)}")
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
    """Find a Java and set the environment for the session; return what was chosen."""
    chosen = prepare_local_session()
    if not master.startswith("local") and "SPARK_LOCAL_IP" in chosen.settings:
        del os.environ["SPARK_LOCAL_IP"]  # the executors of a cluster have to reach this driver
    return str(chosen)


def separate(spark: SparkSession) -> SparkSession:
    """Return a session of the same Spark with our settings, which leaves those of others alone."""
    session = spark.newSession()
    for key, value in _SQL.items():
        session.conf.set(key, value)
    return session
