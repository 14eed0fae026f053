"""kafka-python's integration tests: what they need, and how they are run."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.support.checks.waiting import HarnessError
from tests.support.processes.broker_process import BrokerProcess

_PACKAGE = "kafka-python"
_FILES = (
    "test_producer_integration.py",
    "test_consumer_integration.py",
    "test_admin_integration.py",
)
_EACH_S = 60
_ALL_S = 900

# The version that kafka-python infers from the API versions of the companion broker.
_KAFKA_VERSION = "4.3.0"

# What its own fixtures set where they start a broker themselves. Its tests speak of broker 0.
_SETTINGS = (
    "node.id=0",
    "num.partitions=4",
    "group.min.session.timeout.ms=1000",
    "offsets.topic.num.partitions=4",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS",
)

# The source distribution lacks the module that starts Kafka; with an address it is hardly used.
_SERVICE = '''"""Replaces the module that the distribution lacks: no broker has to be started."""


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass


SpawnedService = ExternalService
'''


def run(directory: Path) -> Mapping[str, str]:
    """Run the suite in `directory`; return each test's outcome by its id.

    Raises:
        HarnessError: It could not be fetched or run.
    """
    source = _unpacked(directory)
    (source / "test" / "__init__.py").touch()
    (source / "test" / "service.py").write_text(_SERVICE)
    results = directory / "results.xml"
    with BrokerProcess(directory / "data", *_SETTINGS) as broker:
        command = [sys.executable, "-m", "pytest", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
        command += ["--quiet", "--show-capture=no", "--tb=short", "--timeout-method=signal"]
        command += [f"--timeout={_EACH_S}", f"--junit-xml={results}", "-o", "junit_family=xunit1"]
        command += [f"test/integration/{name}" for name in _FILES]
        environment = {
            **os.environ,
            "KAFKA_URI": f"kafka://{broker.bootstrap}",
            "KAFKA_VERSION": _KAFKA_VERSION,
            "KAFKA_ROOT": str(directory),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        done = subprocess.run(command, cwd=source, env=environment, timeout=_ALL_S, check=False)
    if done.returncode not in {0, 1}:
        msg = f"pytest ended with {done.returncode}"
        raise HarnessError(msg)
    return dict(_outcomes(results))


def _unpacked(directory: Path) -> Path:
    installed = f"{_PACKAGE}=={version(_PACKAGE)}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
    done = subprocess.run(
        [*command, "--dest", str(directory), installed],
        check=False,
        capture_output=True,
        text=True,
        timeout=_ALL_S,
    )
    (archive, *_) = [*directory.glob("*.tar.gz"), None]
    if done.returncode or archive is None:
        msg = f"pip could not fetch the source of {installed}:\n{done.stderr[-2000:]}"
        raise HarnessError(msg)
    with tarfile.open(archive) as packed:
        packed.extractall(directory, filter="data")
    return Path(str(archive).removesuffix(".tar.gz"))


def _outcomes(results: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(results).iter("testcase"):  # noqa: S314 (pytest wrote it)
        name = f"{case.get('file')}::{case.get('name')}"
        found = {child.tag for child in case} & {"failure", "error", "skipped"}
        yield name, next(iter(sorted(found)), "passed")
