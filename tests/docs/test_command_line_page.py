"""The overview of the command line's page names every command and action."""

import re

from tests.support.checks.command_line_reference import PAGE, leaves


def test_overview_names_each_command() -> None:
    overview = PAGE.read_text().split("\n## ")[0]
    rows = re.findall(r"^\| `kclient ([a-z-]+)(.*?)\|", overview, re.MULTILINE)
    named = {(command, word) for command, rest in rows for word in re.findall(r"[a-z-]+", rest)}
    for name, _ in leaves():
        _, command, *action = name.split()
        assert command in {each for each, _ in rows}
        assert all((command, each) in named for each in action), name


def test_overview_names_no_other_action() -> None:
    overview = PAGE.read_text().split("\n## ")[0]
    known = {name.split()[-1] for name, _ in leaves()}
    cells = re.findall(r"^\| (`kclient [^|]*)\|", overview, re.MULTILINE)
    actions = [each for cell in cells for each in re.findall(r"`([a-z-]+)`", cell)]
    assert actions
    assert set(actions) - known == set()


def test_every_option_has_a_meaning() -> None:
    for name, parser in leaves():
        nameless = [each.dest for each in parser._actions if each.option_strings and not each.help]
        assert nameless == [], name
