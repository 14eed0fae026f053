"""Examples of commands: below the help of each command, and in the reference."""

import argparse

_TITLE = "examples:"
_INDENT = "  "


def add_examples(parser: argparse.ArgumentParser, *commands: str) -> None:
    """Show commands as a user types them below the help of a parser."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join([_TITLE, *(_INDENT + command for command in commands)])


def examples_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the examples below the help of a parser."""
    title, *lines = (parser.epilog or _TITLE).splitlines()
    return [line.removeprefix(_INDENT) for line in lines] if title == _TITLE else []
