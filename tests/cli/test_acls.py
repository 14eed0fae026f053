"""``kclient acls``: what each action prints and does."""

import io
import json
import sys
from collections.abc import Callable, Iterator

import pytest

from kclient.cli.main import main
from kclient.testing import EmbeddedCluster

Captured = pytest.CaptureFixture[str]
Run = Callable[..., tuple[int, str, str]]
ALICE = ("--allow-principal", "User:alice")
READ = "ALLOW READ  principal User:alice  host *  TOPIC LITERAL orders\n"
WRITE = "ALLOW WRITE  principal User:alice  host *  TOPIC LITERAL orders\n"


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
    assert run(*add) == (0, READ + WRITE, "")
    assert run(*add) == (0, READ + WRITE, "")
    assert run("add", "--group", "g", "--deny-principal", "User:*")[0] == 0
    denied = "DENY ALL  principal User:*  host *  GROUP LITERAL g\n"
    assert run("list") == (0, READ + WRITE + denied, "")
    assert run("list", "--principal", "User:*") == (0, denied, "")
    assert run("list", "--topic", "orders", "--topic", "orders") == (0, READ + WRITE, "")
    assert run("list", "--topic", "other") == (0, "", "")
    one = ("remove", "--topic", "orders", *ALICE, "--operation", "Read", "--force")
    assert run(*one) == (0, READ, "")
    assert run("remove", "--topic", "orders", "--group", "g", "--force") == (0, WRITE + denied, "")
    assert run("remove", "--topic", "orders", "--force") == (
        1,
        "",
        "kclient acls: no rule matches\n",
    )


def test_removal_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = ("remove", "--topic", "orders")
    run("add", "--topic", "orders", *ALICE, "--operation", "Read")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    status, shown, error = run(*remove)
    assert (status, shown) == (2, "")
    assert "there is no terminal to ask; use --force" in error
    monkeypatch.setattr(sys, "stdin", Terminal("\nyes\n"))
    question = f"{READ}Remove these rules? (y/n) "
    assert run(*remove) == (1, f"{question}nothing was removed\n", "")
    assert run("list") == (0, READ, "")
    assert run(*remove) == (0, question + READ, "")
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
