"""Spark finds the source without being told, and never loses another one by it."""

import importlib.util
import logging
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kclient.spark.data_source import KclientDataSource
from kclient.spark.discovery import REGISTRATION, is_found


def loaded() -> ModuleType:
    """Import the module anew, from where the wheel takes it."""
    place = REGISTRATION / "pyspark_kclient" / "__init__.py"
    spec = importlib.util.spec_from_file_location("pyspark_kclient", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_spark_looks_for_modules_of_this_name() -> None:
    names = [module.name for module in pkgutil.iter_modules([str(REGISTRATION)])]
    assert names == ["pyspark_kclient"]


@pytest.mark.parametrize("is_there", [True, False])
def test_it_is_found_where_spark_finds_it(monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    # An installed wheel has it beside kclient.
    path = [entry for entry in sys.path if not Path(entry, "pyspark_kclient").exists()]
    monkeypatch.setattr(sys, "path", [*path, str(REGISTRATION)] if is_there else path)
    names = {module.name for module in pkgutil.iter_modules()}
    assert is_found() is ("pyspark_kclient" in names) is is_there


def test_the_module_holds_the_source_under_its_format_name() -> None:
    assert loaded().DefaultSource is KclientDataSource
    assert KclientDataSource.name() == "kclient"


def test_an_error_in_here_does_not_hide_the_sources_of_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "kclient.spark.data_source", None)
    with caplog.at_level(logging.WARNING):
        module = loaded()
    assert not hasattr(module, "DefaultSource")
    assert 'format("kclient") cannot be had' in caplog.text
