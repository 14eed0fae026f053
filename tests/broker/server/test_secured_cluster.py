"""Nodes that connect to each other by TLS and SASL, with the files and commands of the page."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kclient import Producer
from kclient.cli.main import main
from kclient.testing.certificate_authority import CertificateAuthority
from tests.support.processes.broker_command import ADDRESS
from tests.support.processes.child_process import ROOT, ChildProcess
from tests.support.processes.secured_nodes import client_options, commands, write_files

PAGE = ROOT / "docs" / "how-to" / "secure-the-companion-broker.md"


@contextmanager
def running(
    all_arguments: Sequence[Sequence[str]], directory: Path
) -> Iterator[list[ChildProcess]]:
    """Run a process of ``kclient`` with each list of arguments."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ChildProcess(
                    [sys.executable, "-m", "kclient", *each], directory, name=f"node-{number}"
                )
            )
            for number, each in enumerate(all_arguments, 1)
        ]


def test_three_properties_files_start_a_secured_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    files = write_files(PAGE, tmp_path, CertificateAuthority("nodes"))
    all_commands = [commands(PAGE, path) for path in files]
    for formatting, _ in all_commands:
        assert main(formatting) == 0
    with running([start for _, start in all_commands], tmp_path) as processes:
        servers = ",".join(each.wait_for(ADDRESS)[1] for each in processes)
        with Producer(**client_options(servers, tmp_path)) as producer:
            producer.send("t", b"a").result(timeout=30)
            processes[0].kill()
            producer.send("t", b"b").result(timeout=30)
        for each in processes:
            assert "canary" not in each.report()
    assert "canary" not in "".join(capfd.readouterr())
