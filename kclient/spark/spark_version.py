"""Which Spark can do what: the Python Data Source API has grown with every release."""

from importlib import import_module
from typing import NamedTuple

from kclient.common.errors import ConfigError
from kclient.spark.errors import UnsupportedSparkVersionError

Version = tuple[int, int]


class _Capability(NamedTuple):
    since: Version
    older: str  # what an older Spark does instead, or what to use there


_CAPABILITIES: dict[str, _Capability] = {
    "data-source": _Capability((4, 0), "use foreach_partition_sink or foreach_batch_sink"),
    "admission-control": _Capability(
        (4, 2), "an older Spark offers a source no way to limit a micro-batch"
    ),
    "available-now": _Capability(
        (4, 2), "an older Spark runs one micro-batch up to the end of that moment"
    ),
    "report-latest-offset": _Capability(
        (4, 2), "an older Spark does not show how far a query lags behind"
    ),
}


def spark_version() -> str:
    """Return the version of the PySpark that is installed.

    Raises:
        ConfigError: None is.
    """
    try:
        return str(import_module("pyspark").__version__)
    except ImportError as error:
        raise ConfigError(
            "kclient.spark: the 'pyspark' package is missing; pip install kclient[spark]"
        ) from error


def supports(capability: str, version: str | None = None) -> bool:
    """Return whether a Spark has a capability.

    Args:
        capability: Name from the table above.
        version: Version to judge; None judges the installed one.
    """
    found = spark_version() if version is None else version
    return _numbers(found) >= _CAPABILITIES[capability].since


def require(capability: str, what: str, version: str | None = None) -> None:
    """Refuse what the installed Spark cannot do.

    Args:
        capability: Name from the table above.
        what: What the user asked for, as the message names it.
        version: Version to judge; None judges the installed one.

    Raises:
        UnsupportedSparkVersionError: The Spark is too old; the text names one that is not.
    """
    found = spark_version() if version is None else version
    since, older = _CAPABILITIES[capability]
    if _numbers(found) < since:
        raise UnsupportedSparkVersionError(
            f"{what}: got Spark {found}, expected {since[0]}.{since[1]} or newer; {older}"
        )


def _numbers(version: str) -> Version:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
