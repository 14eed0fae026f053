"""Commands and options of the command line's page, written from the parsers."""

import argparse
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kclient.cli.command_line import make_complete_parser
from kclient.cli.common_options import add_connection_options
from kclient.cli.examples import examples_of

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"
_TEST = "tests/cli/test_examples.py"
_GENERATED = re.compile(r"(<!-- generated: ([\w ]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def command_line_page() -> str:
    """Return the page, with the parts between the comments written from the parsers."""
    parts = {"options of client commands": _client_options, "commands": _commands}
    return _GENERATED.sub(
        lambda found: f"{found[1]}\n{parts[found[2]]()}\n{found[3]}", PAGE.read_text()
    )


def leaves(
    parser: argparse.ArgumentParser | None = None,
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command that can be run, with its parser."""
    parser = make_complete_parser() if parser is None else parser
    below = list(_subparsers(parser))
    if not below:
        yield parser.prog, parser
    for each, _ in below:
        yield from leaves(each)


def _subparsers(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Yield the parsers of the next level, with their summaries."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {each.dest: each.help or "" for each in action._choices_actions}
            for name, each in action.choices.items():
                yield each, summaries[name]


def _client_options() -> str:
    return _table(_rows(_client_parser()))


def _client_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    add_connection_options(parser)
    return parser


def _commands() -> str:
    parts = []
    for parser, summary in _subparsers(make_complete_parser()):
        actions = list(_subparsers(parser))
        parts.append(_section("###", parser, summary))
        parts += [_section("####", action, what) for action, what in actions]
    return "\n".join(parts)


def _section(level: str, parser: argparse.ArgumentParser, summary: str) -> str:
    arguments = "".join(f" {_argument(each)}" for each in _positionals(parser))
    parts = [f"{level} `{parser.prog}{arguments}`\n", f"{summary[:1].upper()}{summary[1:]}.\n"]
    table = _option_table(parser)
    if table:
        parts.append(table)
    if is_of_client(parser):
        parts.append(
            "Also the [options of all client commands](#options-of-all-client-commands).\n"
        )
    examples = examples_of(parser)
    if examples:
        parts.append(f"<!-- code: {_TEST} -->\n```sh\n" + "\n".join(examples) + "\n```\n")
    return "\n".join(parts)


def is_of_client(parser: argparse.ArgumentParser) -> bool:
    """Return whether a command has the options of all client commands."""
    return _rows(_client_parser()).keys() <= _rows(parser).keys()


def _option_table(parser: argparse.ArgumentParser) -> str:
    """Return the options of a parser, without those that all client commands have."""
    common = _rows(_client_parser()) if is_of_client(parser) else {}
    return _table(row for row in _rows(parser) if row not in common)


def _table(rows: Iterable[str]) -> str:
    shown = list(rows)
    return "\n".join(["| option | meaning |", "|---|---|", *shown]) + "\n" if shown else ""


def _rows(parser: argparse.ArgumentParser) -> dict[str, None]:
    return {
        f"| {_names(action)} | {_meaning(parser, action)} |": None
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        and (action.option_strings or action.help)
    }


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_argument(action)}`"
    first, *others = sorted(action.option_strings, key=len, reverse=True)
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join([f"`{first}{value}`", *(f"`{other}`" for other in others)])


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper()


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
    ]


def _argument(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return {"+": f"{name}...", "*": f"[{name}...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    required = "; required" if action.required and action.option_strings else ""
    return f"{text}{required}".replace("|", "\\|")
