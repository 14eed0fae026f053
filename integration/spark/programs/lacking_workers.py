"""Tries all operations on workers that lack something, and prints the outcomes as JSON.

python -m integration.spark.programs.lacking_workers MASTER_URL BOOTSTRAP TOPIC DIRECTORY
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from integration.spark.sessions import built
from kclient.spark import (
    check_environment,
    foreach_partition_sink,
    prepare_local_session,
    write_partitions,
)


def outcome_of(attempt: Callable[[], object]) -> list[str]:
    """Return the type and the message of the error."""
    try:
        done = attempt()
    except Exception as error:  # noqa: BLE001 (the test checks the type)
        return [type(error).__name__, str(error)]
    return ["", str(done)]


def attempts(spark: SparkSession, bootstrap: str, topic: str) -> dict[str, Callable[[], object]]:
    conf = {"bootstrap.servers": bootstrap}
    options = {"kafka.bootstrap.servers": bootstrap}
    frame: DataFrame = spark.range(4).selectExpr("cast(id as string) as value")
    return {
        "check_environment": lambda: check_environment(spark, bootstrap),
        "write_partitions": lambda: write_partitions(frame, conf, topic),
        "foreachPartition": lambda: frame.foreachPartition(
            foreach_partition_sink(conf, topic=topic)
        ),
        "df.write": lambda: (
            frame.write.format("kclient").mode("append").options(**options, topic=topic).save()
        ),
        "spark.read": lambda: (
            spark.read.format("kclient").options(**options, subscribe=topic).load().collect()
        ),
    }


def main() -> None:
    master, bootstrap, topic, directory = sys.argv[1:]
    prepare_local_session()
    # A retry would fail, too.
    spark = built(master, Path(directory), {"spark.task.maxFailures": "1"})
    spark.sparkContext.setLogLevel("FATAL")
    found = {name: outcome_of(one) for name, one in attempts(spark, bootstrap, topic).items()}
    print(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main()
