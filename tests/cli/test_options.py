"""Options of the command line."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kclient
from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.support.clients.clients import Clients
from tests.support.processes.child_process import ROOT

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def clients() -> Iterator[Clients]:
    with EmbeddedCluster() as cluster, Clients(cluster.bootstrap_servers) as made:
        yield made


def test_the_version(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["--log-level", "INFO", "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"kclient {kclient.__version__}\n" * 2


def test_the_version_is_known_without_an_installation(tmp_path: Path) -> None:
    """The source tree alone, where no metadata of a distribution is found."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import kclient; print(kclient.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"{kclient.__version__}\n"


def test_every_public_name_is_imported_when_it_is_used() -> None:
    for name in kclient.__all__:
        assert getattr(kclient, name) is not None
    assert set(kclient.__all__) <= set(dir(kclient))
    with pytest.raises(AttributeError, match="module 'kclient' has no attribute 'Produzer'"):
        _ = kclient.Produzer  # type: ignore[attr-defined]  # refused by the typing, too


# -- the address


def test_bootstrap_servers_are_read_from_the_environment(
    clients: Clients, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients.topic(name="orders")
    monkeypatch.setenv("KCLIENT_BOOTSTRAP_SERVERS", clients.bootstrap)
    assert main(["topics", "list"]) == 0
    assert capsys.readouterr().out == "orders\n"


def test_bootstrap_option_overrides_the_environment(
    clients: Clients, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients.topic(name="orders")
    monkeypatch.setenv("KCLIENT_BOOTSTRAP_SERVERS", "no port")
    assert main(["topics", "list", "--bootstrap-server", clients.bootstrap]) == 0
    assert capsys.readouterr().out == "orders\n"
    assert main(["topics", "list"]) == 2
    assert "bootstrap.servers[0]: got 'no port'" in capsys.readouterr().err.replace("_", ".")


# -- numbers

NUMBERS = [
    (["consume", "t", "--max-records", "-1"], "--max-records: got '-1', expected a whole number"),
    (["consume", "t", "--max-records", "0"], "--max-records: got '0', expected a whole number fr"),
    (["consume", "t", "--idle-timeout", "-1"], "--idle-timeout: got '-1', expected seconds, more"),
    (["consume", "t", "--idle-timeout", "nan"], "--idle-timeout: got 'nan', expected seconds"),
    (["consume", "t", "--timeout", "inf"], "--timeout: got 'inf', expected seconds, more than 0"),
    (["topics", "list", "--timeout", "0"], "--timeout: got '0', expected seconds, more than 0"),
    (["produce", "t", "--partition", "-1"], "--partition: got '-1', expected a whole number fro"),
    (["produce", "t", "--partition", "x"], "--partition: got 'x', expected a whole number from 0"),
    (["topics", "create", "t", "--partitions", "0"], "--partitions: got '0', expected a whole nu"),
    (["topics", "create", "t", "--partitions", "2147483648"], "a whole number from 1 to 214748364"),
    (["topics", "create", "t", "--replication-factor", "-2"], "--replication-factor: got '-2', ex"),
    (["topics", "alter", "t", "--partitions", "0"], "--partitions: got '0', expected a whole numb"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), NUMBERS)
def test_numbers_are_checked_at_once(arguments: list[str], text: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["broker", "--data-dir", "d", "--config", "num.partition=3"], "mean 'num.partitions'?"),
        (["topics", "list", "--config", "client.idd=3"], "did you mean 'client.id'?"),
        (["topics", "list", "--config", "retry.backoff.ms=x"], "retry.backoff.ms: got 'x' (str)"),
        (["topics", "list", "--config", "retry.backoff.ms"], "--config: got 'retry.backoff.ms', e"),
        (["topics", "create", "t", "--topic-config", "x"], "--topic-config: got 'x', expected KEY"),
        (["produce", "t", "--config", "queue.buffering.max.ms=5"], "here it is linger.ms"),
    ],
)
def test_options_are_named_as_they_were_given(
    arguments: list[str], text: str, capsys: Captured
) -> None:
    assert main(arguments) == 2
    assert text in capsys.readouterr().err
