"""`import kclient.spark` costs next to nothing, and says what is missing where it is used."""

import subprocess
import sys

import pytest

from kclient import spark as package


def told_by(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_importing_loads_neither_pyspark_nor_pyarrow_and_starts_no_thread() -> None:
    loaded = told_by(
        "import sys, threading, kclient.spark\n"
        "print(*{'pyspark', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules))\n"
        "print(*[name for name in sys.modules if name.startswith('kclient.spark.')])\n"
        "print(threading.active_count())"
    )

    assert loaded == "1"


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_the_first_use_names_the_package_that_is_missing_and_the_extra(missing: str) -> None:
    told = told_by(
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import kclient.spark\n"
        "from kclient.common.errors import ConfigError\n"
        "try:\n"
        "    kclient.spark.write_partitions, kclient.spark.foreach_partition_sink\n"
        "except ConfigError as error:\n"
        "    print(error)"
    )

    assert f"the '{missing}' package is missing; pip install kclient[spark]" in told


@pytest.mark.parametrize("name", package.__all__)
def test_each_public_name_is_where_it_is_said_to_be(name: str) -> None:
    assert getattr(package, name).__name__ == name
    assert name in dir(package)


def test_another_name_is_none_of_the_packages() -> None:
    with pytest.raises(AttributeError, match="no attribute 'foreach_sink'"):
        _ = package.foreach_sink
