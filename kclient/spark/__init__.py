"""kclient for Apache Spark: sinks, sources and tools for PySpark 4, without a jar.

``format("kclient")`` reads and writes batches and streams; Spark finds it without an import of this
package. In addition:

- setup: `prepare_local_session` (one machine), `check_environment` (checks the workers)
- writing: `write_partitions` (returns counts), `foreach_batch_sink`, `foreach_partition_sink`
- monitoring: `lag` of a streaming query, `group_lag` of its commits

Writes are at-least-once, because Spark repeats failed tasks, or with ``delivery=exactly-once``
exactly-once for ``read_committed`` readers.

Names are imported on first use: worker processes import this package often. PySpark and pyarrow
are needed from the first use on (the extra ``spark``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package

if TYPE_CHECKING:
    from kclient.spark.common.errors import (
        DataLossError,
        UnsupportedSparkVersionError,
        WorkerEnvironmentError,
    )
    from kclient.spark.environment.check_environment import EnvironmentReport, check_environment
    from kclient.spark.environment.local_session import LocalSession, prepare_local_session
    from kclient.spark.reader_lag import Lag, group_lag, lag
    from kclient.spark.sink.write_errors import NonDeterministicReplayError, WriteFailedError
    from kclient.spark.sink.write_report import WriteReport
    from kclient.spark.sinks import foreach_batch_sink, foreach_partition_sink, write_partitions

__all__ = [
    "DataLossError",
    "EnvironmentReport",
    "Lag",
    "LocalSession",
    "NonDeterministicReplayError",
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

_MODULES = {
    "DataLossError": "kclient.spark.common.errors",
    "EnvironmentReport": "kclient.spark.environment.check_environment",
    "Lag": "kclient.spark.reader_lag",
    "LocalSession": "kclient.spark.environment.local_session",
    "NonDeterministicReplayError": "kclient.spark.sink.write_errors",
    "UnsupportedSparkVersionError": "kclient.spark.common.errors",
    "WorkerEnvironmentError": "kclient.spark.common.errors",
    "WriteFailedError": "kclient.spark.sink.write_errors",
    "WriteReport": "kclient.spark.sink.write_report",
    "check_environment": "kclient.spark.environment.check_environment",
    "foreach_batch_sink": "kclient.spark.sinks",
    "foreach_partition_sink": "kclient.spark.sinks",
    "group_lag": "kclient.spark.reader_lag",
    "lag": "kclient.spark.reader_lag",
    "prepare_local_session": "kclient.spark.environment.local_session",
    "write_partitions": "kclient.spark.sinks",
}
_EXTRAS = frozenset({"pyspark", "pyarrow"})


def __getattr__(name: str) -> Any:
    """Import a public name on its first use.

    Raises:
        ConfigError: PySpark or pyarrow is not installed.
    """
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        raise ConfigError(missing_package(f"kclient.spark.{name}", missing, "spark")) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
