"""The reference of the command line names every command and option."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from kclient.cli.command_line import make_parser

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"


def parsers(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each command with its options."""
    options = {option for action in parser._actions for option in action.option_strings}
    yield name, options - {"-h", "--help"}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command, each in action.choices.items():
                yield from parsers(each, command)


def test_each_command_and_option_is_described() -> None:
    page = PAGE.read_text()
    named = set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", page))
    words = set(re.findall(r"[a-z-]+", page))
    for command, options in parsers(make_parser(), "kclient"):
        assert command in words
        assert options - named == set()


def test_each_described_option_exists() -> None:
    known = {option for _, options in parsers(make_parser(), "kclient") for option in options}
    described = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE.read_text()))
    assert described - known - {"--help"} == set()
