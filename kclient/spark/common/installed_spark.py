"""The installed Spark: its version, its capabilities, and whether it finds ``format("kclient")``.

The Python Data Source API has grown with every release of Spark.
"""

from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final, NamedTuple

from kclient.common.errors import ConfigError
from kclient.common.extras import missing_package
from kclient.spark.common.errors import UnsupportedSparkVersionError

Version = tuple[int, int]

PACKAGE: Final = "pyspark_kclient"
"""The top-level package that Spark imports to find the data source."""

REGISTRATION: Final = Path(__file__).parents[1] / "registration"
"""Directory of that package in a checkout; an installed wheel has the package next to `kclient`."""


class _Capability(NamedTuple):
    since: Version
    older: str  # what an older Spark does instead, or what to use there


_CAPABILITIES: dict[str, _Capability] = {
    "data-source": _Capability((4, 0), "use foreach_partition_sink or foreach_batch_sink"),
    "admission-control": _Capability(
        (4, 2), "an older Spark offers a source no way to limit a micro-batch"
    ),
    "available-now": _Capability(
        (4, 2), "an older Spark runs one micro-batch up to the current end"
    ),
    "report-latest-offset": _Capability((4, 2), "an older Spark does not show the lag of a query"),
}


def spark_version() -> str:
    """Return the version of the installed PySpark.

    Raises:
        ConfigError: PySpark is not installed.
    """
    try:
        return str(import_module("pyspark").__version__)
    except ImportError as error:
        raise ConfigError(missing_package("kclient.spark", "pyspark", "spark")) from error


def supports(capability: str, version: str | None = None) -> bool:
    """Return whether a Spark has a capability.

    Args:
        capability: Key of the table above.
        version: Version to check; None checks the installed one.
    """
    found = spark_version() if version is None else version
    return _numbers(found) >= _CAPABILITIES[capability].since


def require(capability: str, what: str, version: str | None = None) -> None:
    """Raise unless Spark has a capability.

    Args:
        capability: Key of the table above.
        what: The option or call that needs it, for the message.
        version: Version to check; None checks the installed one.

    Raises:
        UnsupportedSparkVersionError: Spark is too old; the message names the required version.
    """
    found = spark_version() if version is None else version
    since, older = _CAPABILITIES[capability]
    if _numbers(found) < since:
        raise UnsupportedSparkVersionError(
            f"{what}: got Spark {found}, expected {since[0]}.{since[1]} or newer; {older}"
        )


def finds_data_source() -> bool:
    """Return whether Spark finds the data source in this process without registration.

    Spark lists the modules on ``sys.path``. Searching there for one name gives the same result much
    faster. Like Spark, it ignores the import hooks of editable installs.
    """
    return PathFinder.find_spec(PACKAGE) is not None


def _numbers(version: str) -> Version:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
