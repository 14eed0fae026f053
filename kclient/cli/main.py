"""The ``kclient`` command's entry point.

It imports little but the standard library, so that signals are handled while commands are imported.
"""

import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType

from kclient.common.version import VERSION

INTERRUPTED = 130
"""Exit status of a command ended by SIGINT: 128 + 2."""

TERMINATED = 143
"""Exit status of a command ended by SIGTERM: 128 + 15."""


class TerminatedError(KeyboardInterrupt):
    """Raised by SIGTERM; ends a command as Ctrl-C does, so that consumers leave their groups."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status.

    Args:
        arguments: The command line; None for the process's own, with SIGTERM handled, too.
    """
    if (sys.argv[1:] if arguments is None else [*arguments]) == ["--version"]:
        print(f"kclient {VERSION}")  # without the parser, whose import takes longer than all else
        return 0
    try:
        if arguments is None:
            signal.signal(signal.SIGTERM, _terminate)
        status: int = import_module("kclient.cli.command_line").run(arguments)
    except KeyboardInterrupt as stop:
        # CPython ends the process by SIGINT, whatever the status, if the exception passed through
        # code run by exec(), as in the import of a dataclass. This clears that flag.
        exec("")  # noqa: S102 (a constant)
        is_terminated = isinstance(stop, TerminatedError)
        print(f"kclient: {'terminated' if is_terminated else 'interrupted'}", file=sys.stderr)
        return TERMINATED if is_terminated else INTERRUPTED
    return status


def _terminate(number: int, frame: FrameType | None) -> None:
    raise TerminatedError


if __name__ == "__main__":
    sys.exit(main())
