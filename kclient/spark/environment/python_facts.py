"""Facts about a Python process: its interpreter, its packages, and the brokers that it reaches."""

import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from kclient.admin.admin_client import AdminClient
from kclient.common.errors import KafkaError
from kclient.common.types import Node
from kclient.spark.options.secret_options import resolved

PACKAGES = ("pyspark", "pyarrow", "kclient")


@dataclass(frozen=True, slots=True)
class Package:
    """A package in a process.

    Attributes:
        version: Its version; None if it has none, as code shipped by ``addPyFile``.
        problem: The import error; empty if the import succeeds.
    """

    version: str | None = None
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return "missing"
        return self.version or "of unknown version"


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """Facts about a Python process.

    Attributes:
        host: Name of its host.
        executable: Path of the interpreter.
        python: Version of Python: ``3.11.7``.
        packages: By name.
        directory: Working directory, which differs between the executors of a host.
        records: Record codec, ``compiled`` or ``python``; empty without kclient.
        unreachable: Brokers that it cannot reach, each with the error.
    """

    host: str
    executable: str
    python: str
    packages: dict[str, Package]
    directory: str = ""
    records: str = ""
    unreachable: tuple[str, ...] = field(default=())

    @classmethod
    def read(cls, text: str) -> "PythonFacts":
        """Parse the result of a probe."""
        given: dict[str, Any] = json.loads(text)
        packages = {name: Package(**one) for name, one in given.pop("packages").items()}
        unreachable = tuple(given.pop("unreachable"))
        return cls(**given, packages=packages, unreachable=unreachable)

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {one}" for name, one in self.packages.items())
        coded = f" ({self.records})" if self.records else ""
        return f"{self.host}: Python {self.python} ({self.executable}), {packages}{coded}"


def make_probe(conf: Mapping[str, object], timeout_s: float) -> Callable[[object], str]:
    """Return a function that returns facts about its process as JSON.

    It is a nested function, so that it is pickled as code and not as a name to import: the workers
    may not have kclient.

    Args:
        conf: Options of a client by dotted name, with references to secrets; empty to connect to no
            broker.
        timeout_s: Longest wait for each broker.
    """
    names, options = PACKAGES, dict(conf)

    def package(name: str) -> dict[str, object]:
        try:
            module = import_module(name)
        except Exception as error:  # noqa: BLE001 (an import can fail in any way)
            return {"problem": f"{type(error).__name__}: {error}"}
        version = getattr(module, "__version__", None)
        try:
            return {"version": version or metadata.version(name)}
        except metadata.PackageNotFoundError:
            return {"version": version}

    def probe(_: object) -> str:
        packages = {name: package(name) for name in names}
        records, unreachable = "", []
        if "problem" not in packages["kclient"]:
            try:
                records = import_module("kclient.record").IMPLEMENTATION
                if options:
                    facts_module = import_module("kclient.spark.environment.python_facts")
                    unreachable = facts_module.unreachable(options, timeout_s)
            except ImportError as error:  # a dependency of kclient is missing, or kclient is older
                packages["kclient"]["problem"] = f"{type(error).__name__}: {error}"
        facts = {
            "host": platform.node(),
            "executable": sys.executable,
            "python": platform.python_version(),
            "packages": packages,
            "directory": str(Path.cwd()),
            "records": records,
            "unreachable": unreachable,
        }
        return json.dumps(facts)

    return probe


def unreachable(conf: Mapping[str, object], timeout_s: float) -> list[str]:
    """Return the brokers that cannot be reached, each with the error.

    Each broker is contacted at the address that the cluster advertises for it.

    Args:
        conf: Options of a client by dotted name, with references to secrets.
        timeout_s: Longest wait for each response.
    """
    try:
        nodes = _nodes(conf, timeout_s)
    except KafkaError as error:
        return [f"bootstrap servers {conf['bootstrap.servers']}: {error}"]
    found = []
    for node in nodes:
        address = f"[{node.host}]:{node.port}" if ":" in node.host else f"{node.host}:{node.port}"
        try:
            _nodes({**conf, "bootstrap.servers": address}, timeout_s)
        except KafkaError as error:
            found.append(f"broker {node.id} at its advertised listener {address}: {error}")
    return found


def _nodes(conf: Mapping[str, object], timeout_s: float) -> tuple[Node, ...]:
    with AdminClient(resolved(conf)) as admin:
        return admin.describe_cluster(timeout=timeout_s).nodes
