"""Findings of the checks, printed as they are made."""

import argparse
import sys
from enum import StrEnum

from kclient.cli.output import show


class Status(StrEnum):
    """Outcome of a check."""

    OK = "ok"
    WARNING = "warn"
    FAILED = "FAIL"
    SKIPPED = "skip"


_INDENT = " " * 21


class Findings:
    """Prints each finding on a line, with a remedy below it if something is wrong.

    Attributes:
        failed: Number of checks that failed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.failed = 0

    def add(
        self, status: Status, check: str, target: str, found: str, remedy: str | None = None
    ) -> None:
        """Print a finding.

        Args:
            status: Outcome.
            check: What was checked, such as ``TLS``.
            target: Where, such as ``broker.example:9093``.
            found: What was found.
            remedy: What to do about it.
        """
        self.failed += status is Status.FAILED
        text = f"{status:<5} {check:<13}  {target}: {found}"
        if remedy is not None:
            text += f"\n{_INDENT}→ {remedy}"
        finding = {
            "status": status.value.lower(),
            "check": check,
            "target": target,
            "found": found,
            "remedy": remedy,
        }
        show(self._options, text, finding)
        sys.stdout.flush()  # the next check may take its whole timeout
