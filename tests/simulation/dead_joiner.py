"""A client that is killed between its two JoinGroup requests (KIP-394)."""

from kclient import Consumer
from tests.simulation.application import SERVERS, BlockingApplication, Stage
from tests.simulation.scenario import TOPIC

_POLL_S = 0.3
_SESSION_MS = 10_000
"""Session timeout: later rebalances wait for it, as in Kafka; the first one must not."""


class DeadJoiner(BlockingApplication):
    """Sends a JoinGroup request; it is killed when the response has assigned a member id."""

    def __init__(self, stage: Stage, machine: str, name: str, group: str) -> None:
        self.group = group
        super().__init__(stage, machine, name)

    def block(self) -> None:
        """Poll until the process is killed."""
        settings = {
            **self.stage.scenario.consumer,
            "session_timeout_ms": _SESSION_MS,
            "group_id": self.group,
        }
        with Consumer(settings, bootstrap_servers=SERVERS, runtime=self.process.runtime) as member:
            member.subscribe([TOPIC])
            while not self.stopping:
                member.poll(_POLL_S)
