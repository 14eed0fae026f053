"""Passwords that a command reads: from a file, the environment, or the terminal."""

import argparse
import getpass
import os
import stat
import sys
from pathlib import Path

from kclient.common.errors import ConfigError
from kclient.common.secret import Secret

_STANDARD_INPUT = "-"
_MAX_BYTES = 4096


def add_password_options(parser: argparse.ArgumentParser) -> None:
    """Add the sources of a password; it is never an argument, which other users could see."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--password-file",
        metavar="FILE",
        help="file whose first line is the password, - for standard input; by default the command "
        "asks for it",
    )
    source.add_argument(
        "--password-env", metavar="NAME", help="environment variable with the password"
    )


def read_password(options: argparse.Namespace, of: str) -> Secret:
    """Return the password of a command, from the terminal unless an option names another source.

    Raises:
        ConfigError: There is no password, or the terminal got two different ones.
        OSError: The file cannot be read.
    """
    if options.password_file is not None:
        what, password = "--password-file", _first_line(options.password_file)
    elif options.password_env is not None:
        what, password = f"--password-env {options.password_env}", _variable(options.password_env)
    else:
        what, password = f"password of {of}", _from_terminal(of)
    if not password:
        raise ConfigError(f"{what}: got an empty password, expected at least one character")
    return Secret(password)


def warn_of_readers(path: Path, what: str) -> None:
    """Warn if all users of the machine can read a file with secrets."""
    if os.stat(path).st_mode & stat.S_IROTH:
        print(
            f"{path}: all users can read {what}; restrict the file with chmod 600",
            file=sys.stderr,
        )


def _first_line(name: str) -> str:
    if name == _STANDARD_INPUT:
        data = sys.stdin.buffer.readline(_MAX_BYTES + 1)
    else:
        path = Path(name)
        warn_of_readers(path, "the password")
        with path.open("rb") as file:
            data = file.readline(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"--password-file: got a line of more than {_MAX_BYTES} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError("--password-file: got a line that is no UTF-8") from None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"--password-env: got {name!r:.80}, but there is no such variable")
    return value


def _from_terminal(of: str) -> str:
    if not sys.stdin.isatty():
        raise ConfigError(
            f"password of {of}: there is no terminal to ask for it; use --password-file or "
            "--password-env"
        )
    password = getpass.getpass(f"Password of {of}: ")
    if password != getpass.getpass("The same again: "):
        raise ConfigError(f"password of {of}: got two different ones")
    return password
