"""Check of the interpreter that plans ``format("kclient")``, by running it as Spark's JVM does.

Spark starts it next to the driver, with the variables of the JVM: its ``PATH`` decides which
program a name such as ``python3`` is. A process that is started from Python could find another one.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark import cloudpickle

from kclient.spark.common.installed_spark import PACKAGE
from kclient.spark.environment.machine import data_source_python
from kclient.spark.environment.python_facts import PythonFacts

if TYPE_CHECKING:
    from pyspark import SparkContext

_TIMEOUT_S: Final = 60
REMEDY: Final = (
    "set PYSPARK_PYTHON to the path of an interpreter that has it, on every host, before the "
    "session is created"
)
# A pickled function needs the same minor version, so that is checked first.
_SCRIPT: Final = f"""
import json, platform, sys
result = {{"python": platform.python_version()}}
if sys.version_info[:2] == {sys.version_info[:2]}:
    from importlib.machinery import PathFinder
    from pyspark import cloudpickle
    result["facts"] = cloudpickle.loads(bytes.fromhex(sys.argv[1]))(None)
    result["finds_data_source"] = PathFinder.find_spec("{PACKAGE}") is not None
print(json.dumps(result))
"""


@dataclass(frozen=True, slots=True)
class Planner:
    """The interpreter that plans ``format("kclient")``.

    Attributes:
        path: Its name or path, as Spark starts it.
        facts: Facts about its process; None if they could not be read.
        problem: Reason why it cannot plan at all; empty if it can.
    """

    path: str
    facts: PythonFacts | None = None
    problem: str = ""


def probe_planner(context: "SparkContext", probe: Callable[[object], str]) -> Planner:
    """Run the interpreter that Spark starts for data sources, in the JVM of the driver.

    Args:
        context: The context of the session.
        probe: Returns facts about its process as JSON.
    """
    jvm: Any = context._jvm  # noqa: SLF001 (the only access to its environment)
    path = data_source_python(jvm.java.lang.System.getenv)
    pickled: bytes = cloudpickle.dumps(probe)  # type: ignore[no-untyped-call]
    try:
        status, output = _run(jvm, [path, "-c", _SCRIPT, pickled.hex()])
    except Py4JJavaError as error:
        reason = error.java_exception.getMessage()
        return Planner(path, None, f"cannot be started ({reason}); {REMEDY}")
    return read_output(path, status, output)


def read_output(path: str, status: int | None, output: str) -> Planner:
    """Return the planner by the script's exit status, None if it did not end, and its output."""
    last = output.strip().rpartition("\n")[2]
    if status != 0 or not last.startswith("{"):
        reason = f"did not end within {_TIMEOUT_S} s" if status is None else f"failed: {last:.200}"
        return Planner(path, None, f"{reason}; {REMEDY}")
    result: dict[str, Any] = json.loads(last)
    if "facts" not in result:
        driver = ".".join(map(str, sys.version_info[:2]))
        return Planner(
            path, None, f"is Python {result['python']}, and {driver} on the driver; {REMEDY}"
        )
    facts = PythonFacts.read(result["facts"])
    if not result["finds_data_source"] and not facts.packages["kclient"].problem:
        return Planner(
            path,
            facts,
            f"does not find the package {PACKAGE}, which an editable install does not have on "
            "sys.path; call kclient.spark.prepare_local_session() before the session is created",
        )
    return Planner(path, facts)


def _run(jvm: Any, command: list[str]) -> tuple[int | None, str]:
    """Run a child of the JVM; return its status, None after the timeout, and its output."""
    builder = jvm.java.lang.ProcessBuilder(command)
    environment = builder.environment()
    paths = [jvm.org.apache.spark.api.python.PythonUtils.sparkPythonPath()]
    paths += filter(None, [environment.get("PYTHONPATH")])
    environment.put("PYTHONPATH", ":".join(paths))
    process = builder.redirectErrorStream(True).start()  # noqa: FBT003 (Java's signature)
    process.getOutputStream().close()
    if not process.waitFor(_TIMEOUT_S, jvm.java.util.concurrent.TimeUnit.SECONDS):
        process.destroyForcibly()
        return None, ""
    return process.exitValue(), bytes(process.getInputStream().readAllBytes()).decode(
        errors="replace"
    )
