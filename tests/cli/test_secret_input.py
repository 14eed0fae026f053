"""Sources of the password of a command."""

import argparse
import getpass
import io
import sys
from pathlib import Path

import pytest

from kclient.cli.secret_input import add_password_options, read_password
from kclient.common.errors import ConfigError

Captured = pytest.CaptureFixture[str]
CANARY = "canary päss"


class Terminal(io.StringIO):
    """Standard input of a user at a terminal."""

    def isatty(self) -> bool:
        return True


def read(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    add_password_options(parser)
    return read_password(parser.parse_args(arguments), "user 'a'").reveal()


def test_first_line_of_a_file(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "password"
    file.touch(0o600)
    file.write_text(f"{CANARY}\r\nnot the password\n", encoding="utf-8")
    assert read("--password-file", str(file)) == CANARY
    assert capsys.readouterr().err == ""
    file.chmod(0o644)
    assert read("--password-file", str(file)) == CANARY
    assert capsys.readouterr().err == (
        f"{file}: all users can read the password; restrict the file with chmod 600\n"
    )


def test_line_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{CANARY}\nx".encode())))
    assert read("--password-file", "-") == CANARY


def test_variable_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCLIENT_TEST_PASSWORD", CANARY)
    assert read("--password-env", "KCLIENT_TEST_PASSWORD") == CANARY


def test_terminal_asks_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [CANARY, CANARY, CANARY, "canary other"]
    asked: list[str] = []

    def respond(prompt: str) -> str:
        asked.append(prompt)
        return given.pop(0)

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", respond)
    assert read() == CANARY
    assert asked == ["Password of user 'a': ", "The same again: "]
    with pytest.raises(ConfigError, match="two different ones") as caught:
        read()
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\nx\n", "--password-file: got an empty password"),
        (b"canary\xff\n", "got a line that is no UTF-8"),
        (b"canary" * 1000, "got a line of more than 4096 bytes"),
    ],
)
def test_unusable_files(tmp_path: Path, data: bytes, text: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=text) as caught:
        read("--password-file", str(file))
    assert "canary" not in str(caught.value)


def test_missing_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KCLIENT_TEST_PASSWORD", raising=False)
    with pytest.raises(ConfigError, match="there is no such variable"):
        read("--password-env", "KCLIENT_TEST_PASSWORD")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(ConfigError, match="use --password-file or --password-env"):
        read()
