"""Registration of the data source: Spark finds it, and import errors are isolated."""

import importlib.util
import logging
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kclient.spark.common.installed_spark import REGISTRATION, finds_data_source
from kclient.spark.data_source import KclientDataSource


def loaded() -> ModuleType:
    """Import the module from the directory that the wheel includes."""
    path = REGISTRATION / "pyspark_kclient" / "__init__.py"
    spec = importlib.util.spec_from_file_location("pyspark_kclient", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_registration_directory_has_only_the_package() -> None:
    names = [module.name for module in pkgutil.iter_modules([str(REGISTRATION)])]
    assert names == ["pyspark_kclient"]


@pytest.mark.parametrize("installed", [True, False])
def test_finds_data_source_agrees_with_spark(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    # An installed wheel has it next to kclient.
    path = [entry for entry in sys.path if not Path(entry, "pyspark_kclient").exists()]
    monkeypatch.setattr(sys, "path", [*path, str(REGISTRATION)] if installed else path)
    names = {module.name for module in pkgutil.iter_modules()}
    assert finds_data_source() is ("pyspark_kclient" in names) is installed


def test_package_exports_the_data_source() -> None:
    assert loaded().DefaultSource is KclientDataSource
    assert KclientDataSource.name() == "kclient"


def test_import_error_leaves_the_package_empty(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "kclient.spark.data_source", None)
    with caplog.at_level(logging.WARNING):
        module = loaded()
    assert not hasattr(module, "DefaultSource")
    assert 'format("kclient") is not available' in caplog.text
