"""Arguments of each command, from the first example of its help."""

import re
import shlex

from kclient.cli.examples import examples_of
from tests.support.checks.command_line_reference import is_of_client, leaves

_SHELL = re.compile(r" (?:[<>|] ?.*|&&.*)$")

PARSERS = dict(leaves())
ALL = {
    name: shlex.split(_SHELL.sub("", examples_of(parser)[0]).replace("$(kclient ", "").strip())[1:]
    for name, parser in PARSERS.items()
}
"""Arguments by command."""

OF_CLIENTS = {name: ALL[name] for name, parser in PARSERS.items() if is_of_client(parser)}
"""Arguments of the commands that connect to a cluster, without its address."""
