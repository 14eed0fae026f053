"""Capabilities by the version of Spark."""

import pytest

from kclient.common.errors import ConfigError
from kclient.spark.common.errors import UnsupportedSparkVersionError
from kclient.spark.common.installed_spark import require, spark_version, supports


def test_missing_capability_names_the_required_version() -> None:
    with pytest.raises(UnsupportedSparkVersionError) as caught:
        require("admission-control", "maxOffsetsPerTrigger", "4.1.4")
    assert str(caught.value).startswith(
        "maxOffsetsPerTrigger: got Spark 4.1.4, expected 4.2 or newer; "
    )
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("version", ["4.2.0", "4.2.1", "4.3.0", "4.10.0", "5.0.0.dev0"])
def test_newer_versions_have_the_capability(version: str) -> None:
    require("admission-control", "maxOffsetsPerTrigger", version)
    assert supports("admission-control", version)


def test_default_is_the_installed_version() -> None:
    assert supports("data-source")
    assert spark_version().count(".") >= 2
