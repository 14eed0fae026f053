"""What a Python process is: interpreter, packages, and whether it reaches the brokers."""

import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

PACKAGES = ("pyspark", "pyarrow", "kclient")


@dataclass(frozen=True, slots=True)
class Package:
    """A package as a process sees it.

    Attributes:
        version: Its version; None where it tells none, as code that was shipped by ``addPyFile``.
        problem: Why it cannot be imported; empty if it can.
    """

    version: str | None = None
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return "missing"
        return self.version or "of unknown version"


@dataclass(frozen=True, slots=True)
class PythonFacts:
    """What a Python process is.

    Attributes:
        host: Name of its machine.
        executable: Path of the interpreter.
        python: Version of Python: ``3.11.7``.
        packages: By name.
        directory: Where it runs. Executors on one machine have a directory each.
        records: How kclient's records are coded there: ``compiled`` or ``python``; empty without.
        unreachable: What of the Kafka cluster it cannot reach, in words.
    """

    host: str
    executable: str
    python: str
    packages: dict[str, Package]
    directory: str = ""
    records: str = ""
    unreachable: tuple[str, ...] = field(default=())

    @classmethod
    def read(cls, told: str) -> "PythonFacts":
        """Return what a probe told."""
        given: dict[str, Any] = json.loads(told)
        packages = {name: Package(**one) for name, one in given.pop("packages").items()}
        unreachable = tuple(given.pop("unreachable"))
        return cls(**given, packages=packages, unreachable=unreachable)

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {one}" for name, one in self.packages.items())
        coded = f" ({self.records})" if self.records else ""
        return f"{self.host}: Python {self.python} ({self.executable}), {packages}{coded}"


def make_probe(servers: Sequence[str], timeout_s: float) -> Callable[[object], str]:
    """Return a function that tells what the process is in which it is called, as JSON.

    It is made anew by each call, so that it travels to the workers as code and not as a name to be
    imported: kclient may be missing there.

    Args:
        servers: Brokers to reach, as ``host:port``; none to reach nobody.
        timeout_s: Longest wait for each of them.
    """
    names, brokers = PACKAGES, list(servers)

    def package(name: str) -> dict[str, object]:
        try:
            module = import_module(name)
        except Exception as error:  # noqa: BLE001 (a package may fail in any way; that is told)
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
                if brokers:
                    reach = import_module("kclient.spark.environment.reachability")
                    unreachable = reach.unreachable(brokers, timeout_s)
            except ImportError as error:  # a package that kclient needs, or an older kclient
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
