"""``kclient completion``: prints a script that completes commands, options and names in a shell."""

import argparse
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from kclient.cli.command_line import make_complete_parser
from kclient.cli.examples import add_examples

_OF_CLUSTER = {"topic": "topics", "group": "groups"}
"""Commands whose ``list`` prints the names of an argument."""

_NEW_NAMES = {"kclient topics create"}
"""Commands whose arguments do not exist yet."""


class _Value(NamedTuple):
    """Completion of a value.

    Attributes:
        words: The only values; empty if there are others.
        listed_by: Command whose ``list`` prints the values, or None.
    """

    words: tuple[str, ...] = ()
    listed_by: str | None = None


class _Option(NamedTuple):
    """An option: its spellings, its help, and its value, None for a flag."""

    names: tuple[str, ...]
    help: str
    value: _Value | None


class _Command(NamedTuple):
    """A command or a group of commands: the path to it and what may follow."""

    path: str
    commands: dict[str, str]
    options: tuple[_Option, ...]
    arguments: tuple[_Value, ...]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``kclient completion``."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="shell of the script")
    add_examples(
        parser,
        "kclient completion bash",
        "source <(kclient completion bash)",
        "kclient completion zsh > _kclient",
        "kclient completion fish > kclient.fish",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    found = list(_commands(make_complete_parser()))
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    print(scripts[options.shell](found), end="")
    return 0


def _commands(parser: argparse.ArgumentParser) -> Iterator[_Command]:
    path = parser.prog
    below: dict[str, argparse.ArgumentParser] = {}
    summaries: dict[str, str] = {}
    options, arguments = [], []
    for action in parser._actions:  # noqa: SLF001 (argparse has no public list)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 (as above)
            below = dict(action.choices)
            listed = action._choices_actions  # noqa: SLF001 (as above)
            summaries = {each.dest: each.help or "" for each in listed}
        elif action.option_strings:
            has_value = action.nargs != 0
            value = _value(path, action) if has_value else None
            options.append(_Option(tuple(action.option_strings), _summary(action), value))
        else:
            arguments.append(_value(path, action))
    yield _Command(path, summaries, tuple(options), tuple(arguments))
    for each in below.values():
        yield from _commands(each)


def _value(path: str, action: argparse.Action) -> _Value:
    listed_by = None if path in _NEW_NAMES else _OF_CLUSTER.get(action.dest)
    return _Value(tuple(str(each) for each in action.choices or ()), listed_by)


def _summary(action: argparse.Action) -> str:
    return (action.help or "").partition(" (")[0].replace("%%", "%").partition(";")[0]


def _filled(script: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        script = script.replace(f"@{name}@", text)
    return script


# -- bash, and zsh with its emulation of bash's completion

_BASH = r"""
_kclient_names() {
    local name server file
    server=$(printf '%s\n' "$COMP_LINE" | sed -nE 's/.* (-b|--bootstrap-server)[ =]+([^ ]+).*/\2/p')
    file=$(printf '%s\n' "$COMP_LINE" | sed -nE 's/.* --config-file[ =]+([^ ]+).*/\1/p')
    while read -r name; do
        name="${name%%  *}"  # before the first of several columns
        case "$name" in
            *[!A-Za-z0-9._-]*) ;;
            "$cur"*) COMPREPLY+=("$name") ;;
        esac
    done < <(kclient "$1" list ${server:+-b "$server"} ${file:+--config-file "$file"} \
        --timeout 3 2>/dev/null)
}

_kclient_words() {
    local word
    for word in "$@"; do
        case "$word" in
            "$cur"*) COMPREPLY+=("$word") ;;
        esac
    done
}

_kclient() {
    local cur="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
    local path=kclient index
    COMPREPLY=()
    for ((index = 1; index < COMP_CWORD; index++)); do
        case "$path ${COMP_WORDS[index]}" in
            @paths@) path="$path ${COMP_WORDS[index]}" ;;
        esac
    done
    case "$path $previous" in
@values@
    esac
    case "$cur" in
        -*)
            case "$path" in
@options@
            esac
            return ;;
    esac
    case "$path" in
@arguments@
    esac
}

complete -o default -F _kclient kclient
"""


def _bash(commands: list[_Command]) -> str:
    values, options, arguments = [], [], []
    for each in commands:
        for option in each.options:
            if option.value is not None:
                patterns = "|".join(f'"{each.path} {name}"' for name in option.names)
                values.append(f"        {patterns}) {_bash_value(option.value)}return ;;")
        names = " ".join(name for option in each.options for name in option.names)
        options.append(f'                "{each.path}") _kclient_words {names} ;;')
        words = f"_kclient_words {' '.join(each.commands)}; " if each.commands else ""
        words += "".join(_bash_value(value) for value in each.arguments)
        if words:
            arguments.append(f'        "{each.path}") {words};;')
    paths = "|".join(f'"{each.path}"' for each in commands if " " in each.path)
    parts = {
        "paths": paths,
        "values": "\n".join(values),
        "options": "\n".join(options),
        "arguments": "\n".join(arguments),
    }
    return _filled(f"# Completion of kclient in bash: source this file.{_BASH}", parts)


def _bash_value(value: _Value) -> str:
    if value.words:
        return f"_kclient_words {shlex.join(value.words)}; "
    return f"_kclient_names {value.listed_by}; " if value.listed_by else ""


def _zsh(commands: list[_Command]) -> str:
    head = "#compdef kclient\nautoload -U +X bashcompinit && bashcompinit\n"
    return head + _bash(commands)


# -- fish

_FISH = r"""# Completion of kclient in fish: put this file into ~/.config/fish/completions.
function __kclient_path
    set -l path kclient
    for word in (commandline -opc)[2..-1]
        if contains -- "$path $word" @paths@
            set path "$path $word"
        end
    end
    echo $path
end

function __kclient_is
    test (__kclient_path) = "$argv"
end

complete -c kclient -f
@lines@
"""


def _fish(commands: list[_Command]) -> str:
    lines: list[str] = []
    for each in commands:
        here = f"complete -c kclient -n '__kclient_is {each.path}'"
        lines += (
            f"{here} -a {name} -d {_quoted(summary)}" for name, summary in each.commands.items()
        )
        lines += (f"{here}{_fish_option(option)}" for option in each.options)
        lines += (f"{here}{_fish_value(value)}" for value in each.arguments)
    paths = " ".join(_quoted(each.path) for each in commands if " " in each.path)
    return _filled(_FISH, {"paths": paths, "lines": "\n".join(lines)})


def _fish_option(option: _Option) -> str:
    names = "".join(
        f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names
    )
    value = "" if option.value is None else f" -r{_fish_value(option.value)}"
    return f"{names}{value} -d {_quoted(option.help)}"


def _fish_value(value: _Value) -> str:
    if value.words:
        return f" -a {_quoted(' '.join(value.words))}"
    if value.listed_by:
        listed = f"(kclient {value.listed_by} list --timeout 3 2>/dev/null | string split -f1 '  ')"
        return f" -a {_quoted(listed)}"
    return " -F"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
