"""franz-go's integration tests of groups and transactions: how they are built and run."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.checks.waiting import HarnessError
from tests.support.processes.broker_process import BrokerProcess

_MODULE = "github.com/twmb/franz-go"
_PROGRAMS = Path(__file__).parents[1] / "franz_go"
_TESTS = "TestTxnEtl|TestGroupETL"
_RECORDS = "50000"  # of each chain of topics; franz-go's own default is 500,000
_ALL_S = 600
_OUTCOMES = {"PASS": "passed", "FAIL": "failure", "SKIP": "skipped"}


def run(directory: Path) -> Mapping[str, str]:
    """Run the tests in `directory`; return each test's outcome by its name.

    Raises:
        HarnessError: Go is missing, or the tests could not be built.
    """
    directory.mkdir()
    program = _built(directory)
    with BrokerProcess(directory / "data") as broker:
        done = subprocess.run(
            [str(program), "-test.v", "-test.run", _TESTS, f"-test.timeout={_ALL_S}s"],
            cwd=program.parent,
            env={
                **os.environ,
                "KGO_SEEDS": broker.bootstrap,
                "KGO_TEST_RF": "1",
                "KGO_TEST_RECORDS": _RECORDS,
            },
            capture_output=True,
            text=True,
            timeout=_ALL_S + 30,
            check=False,
        )
    outcomes = {
        f"franz-go::{name}": _OUTCOMES[outcome]
        for outcome, name in re.findall(r"^ *--- (\w+): (\S+)", done.stdout, re.MULTILINE)
    }
    if not outcomes or (done.returncode and "failure" not in outcomes.values()):
        msg = f"franz-go's tests ended with {done.returncode}:\n{done.stdout[-4000:]}"
        raise HarnessError(msg)
    return outcomes


def _built(directory: Path) -> Path:
    """Build the tests of the module that our programs use, which its distribution contains."""
    go = shutil.which("go")
    if go is None:
        msg = "there is no go in PATH to build franz-go's tests with"
        raise HarnessError(msg)
    command = [go, "list", "-m", "-f", "{{.Dir}}", _MODULE]
    found = subprocess.run(command, cwd=_PROGRAMS, check=True, capture_output=True, text=True)
    source = directory / "franz-go"
    # Without its modes: the module cache is read-only.
    shutil.copytree(found.stdout.strip(), source, copy_function=shutil.copyfile)
    package = source / "pkg" / "kgo"
    program = package / "kgo.test"
    subprocess.run([go, "test", "-c", "-o", str(program), "."], cwd=package, check=True)
    return program
