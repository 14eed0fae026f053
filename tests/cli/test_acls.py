"""``kclient acls``: what each action prints and does."""

import io
import json
import sys
from collections.abc import Callable, Iterator

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster
from tests.cli.shown_tables import rows_of

Captured = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]
ALICE = ("--allow-principal", "User:alice")
READ = ["ALLOW", "READ", "User:alice", "*", "TOPIC", "LITERAL", "orders"]
WRITE = ["ALLOW", "WRITE", "User:alice", "*", "TOPIC", "LITERAL", "orders"]


def shown(run: Run, *arguments: str) -> list[list[str]]:
    """Return the rules that a command shows."""
    status, text, error = run(*arguments)
    assert (status, error) == (0, "")
    return rows_of(text)[1:]


class Terminal(io.StringIO):
    """Standard input of a user at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def authorized() -> Iterator[EmbeddedCluster]:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with EmbeddedCluster(config=config) as cluster:
        yield cluster


@pytest.fixture
def run(authorized: EmbeddedCluster, capfd: Captured) -> Iterator[Run]:
    """Run a command; the rules on orders and on the group g are removed afterwards."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["acls", *arguments, "-b", authorized.bootstrap_servers])
        shown = capfd.readouterr()
        return status, shown.out, shown.err

    yield call
    call("remove", "--topic", "orders", "--group", "g", "--force")


def test_rules_from_addition_to_removal(run: Run) -> None:
    add = ("add", "--topic", "orders", *ALICE, "--operation", "Read", "--operation", "Write")
    assert shown(run, *add) == [READ, WRITE]
    assert shown(run, *add) == [READ, WRITE]
    assert run("add", "--group", "g", "--deny-principal", "User:*")[0] == 0
    denied = ["DENY", "ALL", "User:*", "*", "GROUP", "LITERAL", "g"]
    assert shown(run, "list") == [READ, WRITE, denied]
    assert shown(run, "list", "--principal", "User:*") == [denied]
    assert shown(run, "list", "--topic", "orders", "--topic", "orders") == [READ, WRITE]
    assert run("list", "--topic", "other") == (0, "", "")
    one = ("remove", "--topic", "orders", *ALICE, "--operation", "Read", "--force")
    assert shown(run, *one) == [READ]
    assert shown(run, "remove", "--topic", "orders", "--group", "g", "--force") == [WRITE, denied]
    assert run("remove", "--topic", "orders", "--force") == (
        1,
        "",
        "kclient acls: no rule matches\n",
    )


def test_removal_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = ("remove", "--topic", "orders")
    run("add", "--topic", "orders", *ALICE, "--operation", "Read")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    status, text, error = run(*remove)
    assert (status, text) == (2, "")
    assert "there is no terminal to ask; use --force" in error
    monkeypatch.setattr(sys, "stdin", Terminal("\nyes\n"))
    status, text, _ = run(*remove)
    assert (status, rows_of(text)[1]) == (1, READ)
    assert text.endswith("\nRemove these rules? (y/n) nothing was removed\n")
    assert shown(run, "list") == [READ]
    assert shown(run, *remove)[-1] == READ
    assert run("list") == (0, "", "")


def test_broker_without_authorizer(capfd: Captured) -> None:
    with EmbeddedCluster() as cluster:
        assert main(["acls", "list", "-b", cluster.bootstrap_servers]) == 1
    assert "the broker has no authorizer" in capfd.readouterr().err


def test_json_has_pattern_and_entry(run: Run) -> None:
    add = ("add", "--topic", "orders", *ALICE, "--operation", "Read", "--json")
    rule = {
        "pattern": {"resource_type": "TOPIC", "name": "orders", "pattern_type": "LITERAL"},
        "entry": {
            "principal": "User:alice",
            "host": "*",
            "operation": "READ",
            "permission_type": "ALLOW",
        },
    }
    assert json.loads(run(*add)[1]) == rule
    assert json.loads(run("list", "--json")[1]) == rule
