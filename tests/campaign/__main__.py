"""Runs parts of the campaign: ``python -m tests.campaign [PART …]``; all without a name.

Each part writes its output to ``build/campaign/<part>.log`` and its row to the report. A part that
fails does not stop those after it; the exit status is 1 if one failed.
"""

import os
import platform
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.campaign.parts import Part, chosen
from tests.campaign.report import PAGE, Run, record

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "build" / "campaign"


def main(names: list[str], page: Path = PAGE, logs: Path = LOGS) -> int:
    """Run the named parts; return the exit status."""
    try:
        parts = chosen(names)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    logs.mkdir(parents=True, exist_ok=True)
    failed = 0
    for part in parts:
        log = logs / f"{part.name}.log"
        _print(f"==> {part.name}: {part.covers} ({log})")
        started, commit = datetime.now(UTC), commit_of(ROOT)
        before = time.monotonic()
        result = run(part, log)
        took = time.monotonic() - before
        failed += result != "passed"
        record(page, part.name, _run_of(part, result, commit, started, took))
        _print(f"    {result} after {took:.0f} s")
    return 1 if failed else 0


def run(part: Part, log: Path) -> str:
    """Run one part, writing its output to a file; return "passed", or how it failed."""
    command = ["make", "--no-print-directory", *part.target]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **dict(part.environment)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            status = process.wait(part.limit_s)
        except subprocess.TimeoutExpired:
            return f"**failed**: killed after {part.limit_s:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    return "passed" if status == 0 else f"**failed**: exit status {status}"


def _run_of(part: Part, result: str, commit: str, started: datetime, took_s: float) -> Run:
    return Run(
        result,
        f"{started:%Y-%m-%d %H:%M}",
        f"{took_s:.0f} s",
        commit,
        platform.python_version(),
        part.kafka,
        str(len(os.sched_getaffinity(0))),
    )


def commit_of(tree: Path) -> str:
    """Return the commit that is checked out; with a + if files other than the report differ."""
    head = _git(tree, "describe", "--always", "--exclude=*") or "unknown"
    changed = _git(tree, "status", "--porcelain", "--", ".", f":!{PAGE.relative_to(ROOT)}")
    return f"{head}+" if changed else head


def _git(tree: Path, *arguments: str) -> str:
    found = subprocess.run(
        ["git", *arguments], cwd=tree, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
