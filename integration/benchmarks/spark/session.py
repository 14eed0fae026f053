"""The Spark session of the benchmark."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from kclient.spark import prepare_local_session

SLOTS = 2
_PROJECT = Path(__file__).parents[3]


@contextmanager
def spark_session(jars: Sequence[Path], directory: Path) -> Iterator[tuple[SparkSession, str]]:
    """Yields a local session with `jars`, and a description of Spark, Java and the interpreter."""
    # Workers import the sinks of the benchmark.
    path = [str(_PROJECT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    chosen = prepare_local_session()
    builder = (
        SparkSession.builder.master(f"local[{SLOTS}]")
        .appName("kclient-benchmark")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    )
    if jars:
        builder = builder.config("spark.jars", ",".join(map(str, jars)))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session, chosen.summary
    finally:
        session.stop()
