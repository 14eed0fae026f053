"""Modules that the import of a public name loads, and those that it must not load."""

import subprocess
import sys

import pytest

import kclient
import kclient.aio
from kclient.record import IMPLEMENTATION

HEAVY = frozenset(
    {
        "argparse",
        "asyncio",
        "bz2",
        "confluent_kafka",
        "crc32c",
        "difflib",
        "email",
        "hypothesis",
        "importlib.metadata",
        "lz4",
        "lzma",
        "mmh3",
        "multiprocessing",
        "numpy",
        "pandas",
        "pyarrow",
        "pyspark",
        "pytest",
        "shutil",
        "snappy",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "unittest",
        "zipfile",
        "zstandard",
    }
)
"""Modules of other packages that a client loads when it needs them, or never."""

GENERATORS = frozenset({"ast", "dataclasses", "dis", "inspect", "json"})
"""Modules that generate or inspect code, or compile regular expressions, when they are imported."""

OWN = ("admin", "broker", "cli", "consumer", "producer", "spark", "testing", "protocol.registry")
CLIENTS = {"AdminClient": "admin", "Consumer": "consumer", "Producer": "producer"}
UNUSED = {
    "AdminClient": {"kclient.protocol.messages.fetch", "kclient.protocol.messages.produce"},
    "Consumer": {"kclient.protocol.messages.produce"},
    "Producer": {
        "kclient.producer.arrow_records",
        "kclient.protocol.messages.fetch",
        "kclient.protocol.messages.group_membership",
    },
}


def modules_after(statement: str) -> set[str]:
    """Return the modules of a new interpreter after a statement, without those of its start."""
    # The start of the interpreter imports what the environment's .pth files name.
    program = (
        f"import sys; start = set(sys.modules); {statement}\n"
        "print(*sorted(set(sys.modules) - start))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def uses_reference(client: str) -> bool:
    """Return whether a client needs the reference of the compiled record code."""
    return client != "AdminClient" and IMPLEMENTATION == "python"


def own(*packages: str) -> set[str]:
    return {f"kclient.{package}" for package in packages}


def test_import_of_the_package_loads_no_client() -> None:
    loaded = modules_after("import kclient")
    assert {name for name in loaded if name.startswith("kclient")} == {
        "kclient",
        "kclient.common",
        "kclient.common.version",
    }
    assert not loaded & HEAVY


@pytest.mark.parametrize("client", CLIENTS)
def test_client_loads_only_what_it_uses(client: str) -> None:
    loaded = modules_after(f"from kclient import {client}")
    used = CLIENTS[client]
    assert f"kclient.{used}" in loaded
    assert not loaded & HEAVY
    assert not loaded & own(*(package for package in OWN if package != used))
    assert not loaded & UNUSED[client]
    assert ("kclient.record.reference" in loaded) == uses_reference(client)
    if not uses_reference(client):
        assert not loaded & GENERATORS


@pytest.mark.parametrize("name", [name for name in kclient.__all__ if name not in CLIENTS])
def test_other_names_load_no_heavy_module(name: str) -> None:
    assert not modules_after(f"from kclient import {name}") & HEAVY


def test_import_of_the_asyncio_package_loads_no_client() -> None:
    loaded = modules_after("import kclient.aio")
    assert {name for name in loaded if name.startswith("kclient")} == {
        "kclient",
        "kclient.aio",
        "kclient.common",
        "kclient.common.version",
    }
    assert not loaded & HEAVY


@pytest.mark.parametrize("client", CLIENTS)
def test_asyncio_client_loads_no_other_client(client: str) -> None:
    loaded = modules_after(f"from kclient.aio import {client}")
    used = CLIENTS[client]
    assert f"kclient.{used}" in loaded
    assert not loaded & own(*(package for package in OWN if package != used))
    assert not loaded & UNUSED[client]


def test_asyncio_package_has_the_clients_and_the_loop() -> None:
    assert set(kclient.aio.__all__) == {*CLIENTS, "TransactionalLoop"} <= set(dir(kclient.aio))
    with pytest.raises(AttributeError, match=r"^module 'kclient\.aio' has no attribute 'Nothing'$"):
        getattr(kclient.aio, "Nothing")  # noqa: B009
    with pytest.raises(ImportError, match=r"cannot import name 'Nothing' from 'kclient\.aio' "):
        exec("from kclient.aio import Nothing")  # noqa: S102
