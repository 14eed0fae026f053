"""The ``kclient`` command's entry point.

It imports next to nothing by itself, so that Ctrl-C is handled also while commands are imported.
"""

import sys
from collections.abc import Sequence
from importlib import import_module

INTERRUPTED = 130
"""Exit status of a command that SIGINT ended: 128 + 2, as shells report it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    try:
        status: int = import_module("kclient.cli.command_line").run(arguments)
    except KeyboardInterrupt:
        # CPython ends the process by SIGINT, whatever the status, if the exception has passed code
        # that exec() ran from a string, as the import of a dataclass does. This clears the mark.
        exec("")  # noqa: S102 (a constant)
        print("kclient: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main())
