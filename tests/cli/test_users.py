"""``kclient users``: what each action prints and does."""

import io
import json
import sys
from collections.abc import Callable

import pytest

from kclient.admin import ScramCredentialInfo, UserScramCredentialUpsertion
from kclient.cli.main import main
from tests.cli.shown_tables import rows_of
from tests.support.clients.clients import Clients

Run = Callable[..., tuple[int, str, str]]
SHA_256 = "SCRAM-SHA-256"
PASSWORD = ("--password-env", "KCLIENT_TEST_PASSWORD")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_TEST_PASSWORD", "canary")


@pytest.fixture
def erin(shared_clients: Clients) -> str:
    """A user with credentials for both mechanisms."""
    admin = shared_clients.admin()
    for mechanism in (SHA_256, "SCRAM-SHA-512"):
        info = ScramCredentialInfo(mechanism, 5000)
        admin.alter_user_scram_credentials(UserScramCredentialUpsertion("erin", info, "canary"))
    return "erin"


def test_user_from_addition_to_deletion(run: Run) -> None:
    added = run("users", "add", "alice", "--mechanism", SHA_256, "--iterations", "8192", *PASSWORD)
    assert added == (0, "added SCRAM-SHA-256 of alice\n", "")
    assert run("users", "add", "alice", *PASSWORD) == (0, "added SCRAM-SHA-512 of alice\n", "")
    for action in (("list",), ("describe", "alice", "alice")):
        assert rows_of(run("users", *action)[1]) == [
            ["USER", "MECHANISM", "ITERATIONS"],
            ["alice", SHA_256, "8192"],
            ["alice", "SCRAM-SHA-512", "4096"],
        ]
    altered = run("users", "alter", "alice", "--mechanism", SHA_256, *PASSWORD)
    assert altered == (0, "altered SCRAM-SHA-256 of alice\n", "")
    assert run("users", "delete", "alice") == (0, "deleted alice\n", "")
    assert run("users", "list") == (0, "", "")


def test_one_mechanism_is_deleted(run: Run, erin: str) -> None:
    assert run("users", "delete", erin, "--mechanism", SHA_256) == (0, "deleted erin\n", "")
    assert rows_of(run("users", "list")[1])[1:] == [["erin", "SCRAM-SHA-512", "5000"]]
    refused = run("users", "delete", erin, "--mechanism", SHA_256)
    assert refused[0] == 1
    assert refused[2].endswith("no credential for SCRAM-SHA-256: 'erin'; nothing was deleted\n")


def test_nothing_is_deleted_if_a_user_does_not_exist(run: Run, erin: str) -> None:
    assert run("users", "delete", erin, "nosuch")[0] == 1
    assert len(rows_of(run("users", "list")[1])) == 3


def test_user_that_does_not_exist(run: Run, erin: str) -> None:
    status, shown, error = run("users", "describe", "nosuch", erin)
    assert (status, error) == (1, "kclient users: user 'nosuch' does not exist\n")
    assert {row[0] for row in rows_of(shown)[1:]} == {"erin"}
    assert run("users", "alter", "nosuch", *PASSWORD)[2] == (
        "kclient users: user 'nosuch' has no credential for SCRAM-SHA-512; use add\n"
    )


def test_credential_that_exists_is_not_added(run: Run, erin: str) -> None:
    status, shown, error = run("users", "add", erin, *PASSWORD)
    assert (status, shown) == (1, "")
    assert error == ("kclient users: user 'erin' has a credential for SCRAM-SHA-512; use alter\n")


def test_password_is_required_and_checked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    status, _, error = run("users", "add", "bob")
    assert (status, "there is no terminal" in error) == (2, True)
    monkeypatch.setenv("KCLIENT_TEST_PASSWORD", "")
    assert run("users", "add", "bob", *PASSWORD)[0] == 2


def test_iterations_are_checked_at_once(
    closed_port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for count in ("4095", "16385"):
        assert main(["users", "add", "a", "--iterations", count, "-b", closed_port]) == 2
        assert f"--iterations: got {count}, expected 4096 to 16384" in capsys.readouterr().err


def test_json_has_the_credentials_of_a_user(run: Run, erin: str) -> None:
    infos = [{"mechanism": name, "iterations": 5000} for name in (SHA_256, "SCRAM-SHA-512")]
    for action in (("list",), ("describe", erin)):
        (line,) = run("users", *action, "--json")[1].splitlines()
        assert json.loads(line) == {"user": erin, "credentials": infos}
