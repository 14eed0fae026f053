"""Lazy import of the public names of kclient.spark."""

import subprocess
import sys

import pytest

from kclient import spark as package


def output_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_import_loads_neither_pyspark_nor_pyarrow() -> None:
    loaded = output_of(
        "import sys, threading, kclient.spark\n"
        "print(*{'pyspark', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules))\n"
        "print(*[name for name in sys.modules if name.startswith('kclient.spark.')])\n"
        "print(threading.active_count())"
    )

    assert loaded == "1"


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_missing_package_is_named_with_the_extra(missing: str) -> None:
    output = output_of(
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import kclient.spark\n"
        "from kclient.common.errors import ConfigError\n"
        "try:\n"
        "    kclient.spark.write_partitions, kclient.spark.foreach_partition_sink\n"
        "except ConfigError as error:\n"
        "    print(error)"
    )

    assert f"the '{missing}' package is missing; pip install {missing}" in output


@pytest.mark.parametrize("name", package.__all__)
def test_each_public_name_can_be_imported(name: str) -> None:
    assert getattr(package, name).__name__ == name
    assert name in dir(package)


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'foreach_sink'"):
        _ = package.foreach_sink
