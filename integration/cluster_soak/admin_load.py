"""An admin client that is in use all the time, whatever happens to the brokers."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from kclient import AdminClient
from kclient.common.errors import KafkaError

_EVERY_S = 1.0
_TIMEOUT_S = 15.0
_TOLERANCE_S = 3.0  # a busy machine


class AdminLoad:
    """Calls one method of an AdminClient after another in a thread.

    Attributes:
        succeeded: How many calls did.
        failed: The classes of the errors of the others.
        longest: How long the longest call took, in seconds.
        faults: Calls that took longer than their timeout or raised what is no KafkaError.
    """

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="admin", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(2 * _TIMEOUT_S)
        assert not self._thread.is_alive(), "a call of the admin client does not return"
        self._admin.close()

    def _run(self) -> None:
        while True:
            for name, call in self._calls.items():
                if self._stopping.wait(_EVERY_S):
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
