"""kclient for Apache Spark: sinks, sources and help for PySpark 4, without a jar.

``format("kclient")`` reads and writes tables and streams; Spark finds it without this package being
imported. What is here goes with it:

- to begin: `prepare_local_session` (one machine), `check_environment` (what do the workers lack?)
- to write: `write_partitions` (counts come back), `foreach_batch_sink`, `foreach_partition_sink`
- to watch: `lag` of a streaming query, `group_lag` of its commits

Rows arrive at least once, however they are written: Spark runs a failed task again.

Nothing here is imported before it is used: worker processes import this package often. PySpark and
pyarrow are needed from the first use on (``pip install kclient[spark]``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import ConfigError

if TYPE_CHECKING:
    from kclient.spark.environment.check_environment import check_environment
    from kclient.spark.environment.environment_report import EnvironmentReport
    from kclient.spark.environment.lag import Lag, group_lag, lag
    from kclient.spark.environment.local_session import LocalSession, prepare_local_session
    from kclient.spark.errors import (
        DataLossError,
        UnsupportedSparkVersionError,
        WorkerEnvironmentError,
    )
    from kclient.spark.sink.foreach_batch_sink import foreach_batch_sink
    from kclient.spark.sink.foreach_partition_sink import foreach_partition_sink
    from kclient.spark.sink.partition_writer import write_partitions
    from kclient.spark.sink.write_failed_error import WriteFailedError
    from kclient.spark.sink.write_report import WriteReport

__all__ = [
    "DataLossError",
    "EnvironmentReport",
    "Lag",
    "LocalSession",
    "UnsupportedSparkVersionError",
    "WorkerEnvironmentError",
    "WriteFailedError",
    "WriteReport",
    "check_environment",
    "foreach_batch_sink",
    "foreach_partition_sink",
    "group_lag",
    "lag",
    "prepare_local_session",
    "write_partitions",
]

_HOMES = {
    "DataLossError": "kclient.spark.errors",
    "EnvironmentReport": "kclient.spark.environment.environment_report",
    "Lag": "kclient.spark.environment.lag",
    "LocalSession": "kclient.spark.environment.local_session",
    "UnsupportedSparkVersionError": "kclient.spark.errors",
    "WorkerEnvironmentError": "kclient.spark.errors",
    "WriteFailedError": "kclient.spark.sink.write_failed_error",
    "WriteReport": "kclient.spark.sink.write_report",
    "check_environment": "kclient.spark.environment.check_environment",
    "foreach_batch_sink": "kclient.spark.sink.foreach_batch_sink",
    "foreach_partition_sink": "kclient.spark.sink.foreach_partition_sink",
    "group_lag": "kclient.spark.environment.lag",
    "lag": "kclient.spark.environment.lag",
    "prepare_local_session": "kclient.spark.environment.local_session",
    "write_partitions": "kclient.spark.sink.partition_writer",
}
_NEEDED = frozenset({"pyspark", "pyarrow"})


def __getattr__(name: str) -> Any:
    """Import a public name where it is first used.

    Raises:
        ConfigError: PySpark or pyarrow is not installed.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        raise ConfigError(
            f"kclient.spark.{name}: the {missing!r} package is missing; pip install kclient[spark]"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
