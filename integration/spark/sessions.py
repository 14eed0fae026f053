"""Sessions on a standalone cluster of this host."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from integration.harness.spark_standalone import HOST, QUICK_START, WORKERS


def built(
    master_url: str, directory: Path, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session with an executor on each worker, which runs one task at a time.

    Args:
        master_url: URL of the cluster.
        directory: Directory for the driver's files.
        settings: Additional Spark settings.
    """
    builder = (
        SparkSession.builder.master(master_url)
        .appName("kclient-integration")
        .config("spark.cores.max", WORKERS)
        .config("spark.executor.cores", 1)
        .config("spark.executor.memory", "480m")
        # Short jobs on little data: compile less, in the JVMs and in Spark.
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.executor.extraJavaOptions", QUICK_START)
        .config("spark.sql.codegen.wholeStage", "false")
        # Tasks start when both executors are registered, so that both get some.
        .config("spark.scheduler.minRegisteredResourcesRatio", 1.0)
        .config("spark.scheduler.maxRegisteredResourcesWaitingTime", "60s")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", HOST)
        .config("spark.driver.bindAddress", HOST)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
    )
    for name, value in (settings or {}).items():
        builder.config(name, value)
    return builder.getOrCreate()
