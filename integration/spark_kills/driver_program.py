"""The driver that is killed: runs the jobs of a directory, one after the other.

``python -m integration.spark_kills.driver_program MASTER DIRECTORY``
"""

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from integration.harness.spark_standalone import QUICK_START
from integration.spark_kills.crashing_source import CrashingDataSource
from integration.spark_kills.jobs import Job, Kind, run
from kclient.spark.environment.local_session import prepare_local_session
from tests.support.checks.waiting import wait_until

_A_DAY_S = 86_400.0


def session(master: str, directory: Path) -> SparkSession:
    prepare_local_session()
    builder = SparkSession.builder.master(master).appName("kclient-kills")
    settings: dict[str, bool | float | int | str | None] = {  # the type that PySpark expects
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.executor.extraJavaOptions": f"-Djava.io.tmpdir={directory}",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    made = builder.config(map=settings).getOrCreate()
    made.sparkContext.setLogLevel("WARN")
    made.dataSource.register(CrashingDataSource)
    return made


def main(master: str, directory: Path) -> None:
    spark = session(master, directory)
    gateway = spark.sparkContext._gateway  # noqa: SLF001 (the only access to the JVM's process)
    assert gateway is not None
    jvm: int = gateway.proc.pid
    number = 0
    while True:
        job_file = directory / f"job-{number}.json"
        wait_until(job_file.exists, "there is a job", _A_DAY_S)
        found = json.loads(job_file.read_text())
        run(spark, jvm, Job(**{**found, "kind": Kind(found["kind"])}))
        print(f"job {number} is done", flush=True)
        number += 1


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
