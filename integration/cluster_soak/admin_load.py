"""An admin client in continuous use during a run."""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping

from kclient import AdminClient
from kclient.common.errors import KafkaError
from tests.support.clients.background_thread import BackgroundThread

_EVERY_S = 1.0
_TIMEOUT_S = 15.0
_TOLERANCE_S = 3.0  # a busy machine


class AdminLoad(BackgroundThread):
    """Calls one method of an AdminClient after another.

    Attributes:
        succeeded: How many calls did.
        failed: The classes of the errors of the others.
        longest: How long the longest call took, in seconds.
        faults: Calls that took longer than their timeout or raised anything but a KafkaError.
    """

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        super().__init__("admin", "a call of the admin client", 2 * _TIMEOUT_S)
        self.succeeded = 0
        self.failed: Counter[str] = Counter()
        self.longest = 0.0
        self.faults: list[str] = []
        self._admin = AdminClient(bootstrap_servers=bootstrap, request_timeout_ms=4_000)
        admin = self._admin
        self._calls: Mapping[str, Callable[[], object]] = {
            "describe_cluster": lambda: admin.describe_cluster(timeout=_TIMEOUT_S),
            "list_topics": lambda: admin.list_topics(timeout=_TIMEOUT_S),
            "describe_topics": lambda: admin.describe_topics([topic], timeout=_TIMEOUT_S),
            "list_groups": lambda: admin.list_groups(timeout=_TIMEOUT_S),
            "describe_consumer_groups": lambda: admin.describe_consumer_groups(
                [group], timeout=_TIMEOUT_S
            ),
            "list_consumer_group_offsets": lambda: admin.list_consumer_group_offsets(
                group, timeout=_TIMEOUT_S
            ),
        }

    def run(self) -> None:
        with self._admin:
            for name, call in itertools.cycle(self._calls.items()):
                if self.stopping.wait(_EVERY_S):
                    return
                self._time(name, call)

    def _time(self, name: str, call: Callable[[], object]) -> None:
        began = time.monotonic()
        try:
            call()
            self.succeeded += 1
        except KafkaError as error:
            self.failed[type(error).__name__] += 1
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a fault)
            self.faults.append(f"{name}() raised {error!r}")
        took = time.monotonic() - began
        self.longest = max(self.longest, took)
        if took > _TIMEOUT_S + _TOLERANCE_S:
            self.faults.append(f"{name}() took {took:.1f} s with timeout={_TIMEOUT_S:g}")
