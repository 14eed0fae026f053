"""Each code block of the README and the pages runs as pasted, or names the test that runs it."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.testing import EmbeddedCluster
from tests.support.checks.document_blocks import CodeBlock, code_blocks
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ROOT, command, script

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    block for page in PAGES for block in code_blocks(page) if block.language in {"python", "sh"}
]
STANDALONE = [block for block in BLOCKS if block.note is None]
TESTS = ("integration/", "tests/")
NAMED = [block for block in BLOCKS if block.note is not None and block.note.startswith(TESTS)]
EXCLUDED = [block for block in BLOCKS if block.note is not None and block not in NAMED]
REASONS = {
    "installs the package",
    "needs Apache Kafka",
    "needs a Spark cluster",
    "runs for minutes",
}
ADDRESSES = ("localhost:9092", "127.0.0.1:9092")


def name_of(block: CodeBlock) -> str:
    return f"{block.page.relative_to(ROOT)}:{block.line}"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """The address of a broker with three records in the topic orders."""
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as clients:
        clients.topic(name="orders")
        clients.topic(name="orders-copy")
        clients.fill("orders", 3)
        yield cluster.bootstrap_servers


@pytest.mark.parametrize(
    "block", [each for each in STANDALONE if each.language == "python"], ids=name_of
)
def test_python_block_runs_as_pasted(block: CodeBlock, bootstrap: str, tmp_path: Path) -> None:
    code = block.code
    for address in ADDRESSES:
        code = code.replace(address, bootstrap)
    with script(tmp_path, code) as process:
        process.finish()


@pytest.mark.parametrize(
    "block", [each for each in STANDALONE if each.language == "sh"], ids=name_of
)
def test_shell_block_runs_as_pasted(block: CodeBlock, bootstrap: str, tmp_path: Path) -> None:
    if block.code.startswith("kclient broker "):
        start_broker(block.code, tmp_path)
        return
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "KCLIENT_BOOTSTRAP_SERVERS": bootstrap}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


def start_broker(line: str, tmp_path: Path) -> None:
    """Start the broker of a block at a free port, and stop it with Ctrl-C."""
    arguments = line.replace("127.0.0.1:9092", "127.0.0.1:0").split()[1:]
    arguments = [str(tmp_path / "data") if each == "./data" else each for each in arguments]
    with command(tmp_path, *arguments) as broker:
        broker.wait_for("bootstrap.servers=127.0.0.1:")
        broker.interrupt()
        broker.finish()


@pytest.mark.parametrize("block", NAMED, ids=name_of)
def test_named_test_runs_the_page(block: CodeBlock) -> None:
    assert block.note is not None
    path, _, name = block.note.partition("::")
    source = (ROOT / path).read_text()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    tests = [each for each in functions if each.name.startswith("test_")]
    assert tests
    if name:
        tests = [each for each in tests if each.name == name]
        assert len(tests) == 1, f"no test {name} in {path}"
        source = ast.unparse(tests[0])
    assert block.page.stem in source, f"{path} does not read {block.page.name}"


@pytest.mark.parametrize("block", EXCLUDED, ids=name_of)
def test_excluded_block_has_a_known_reason(block: CodeBlock) -> None:
    assert block.note is not None
    assert block.note.removeprefix("not run, ") in REASONS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = [block.code for block in code_blocks(page)] + re.findall(
        r"`([^`\n]+)`", page.read_text()
    )
    named = {
        target for text in code for target in re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)
    }
    assert named - targets == set()
