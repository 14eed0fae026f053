"""A verifiable client in a process of its own, whose events are JSON lines."""

from collections.abc import Callable
from typing import Any

from integration.harness.kafka_runtime import JavaCommand, JavaProcess
from integration.harness.tool_output import json_events
from tests.support.checks.waiting import HarnessError, wait_until

Event = dict[str, Any]


class RunningTool:
    """The process and its events so far."""

    def __init__(self, command: JavaCommand, process: JavaProcess) -> None:
        self._command = command
        self._process = process

    def events(self, name: str | None = None) -> list[Event]:
        """Returns the events so far, or those called `name`."""
        events = json_events(self._command.stdout.read_bytes())
        return [event for event in events if name is None or event["name"] == name]

    def await_events(
        self, name: str, matching: Callable[[list[Event]], bool] = bool, timeout: float = 30
    ) -> list[Event]:
        """Returns the events called `name` as soon as `matching` accepts them.

        Raises:
            HarnessError: when the tool ends before, or `timeout` seconds pass.
        """

        def events() -> list[Event]:
            ended = self._process.exit_code()
            found = self.events(name)
            if matching(found):
                return found
            if ended is not None:
                output = self._command.stderr.read_text()[-2000:]
                msg = f"{self._command.name} ended with {ended}: {output}"
                raise HarnessError(msg)
            return []

        return wait_until(events, f"{self._command.name} reports {name}", timeout)

    def stop(self, timeout: float = 30) -> None:
        """Terminates it; a consumer commits and leaves its group first."""
        self._process.terminate()
        self._process.wait(timeout)

    def kill(self) -> None:
        """Ends it without leaving its group."""
        self._process.kill()
        self._process.wait(10)
