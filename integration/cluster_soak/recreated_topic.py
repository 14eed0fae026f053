"""A topic that is deleted and created again while a producer and a consumer use it."""

import threading
import time

from kclient import AdminClient, NewTopic
from kclient.common.broker_errors import TopicExistsError, UnknownTopicOrPartitionError
from kclient.common.errors import KafkaTimeoutError
from tests.support.checks.waiting import wait_until

_END_S = 60.0


class RecreatedTopic:
    """Creates a topic, deletes it and creates it again.

    Attributes:
        created: When it was created each time, by the monotonic clock.
    """

    def __init__(self, admin: AdminClient, name: str, partitions: int, replicas: int) -> None:
        self.name = name
        self.created: list[float] = []
        self._admin = admin
        self._new = NewTopic(name, num_partitions=partitions, replication_factor=replicas)

    def create(self) -> None:
        wait_until(self._try_to_create, f"{self.name} is created", _END_S, 0.5)
        self.created.append(time.monotonic())

    def recreate(self, missing_s: float, pause: threading.Event) -> None:
        """Deletes the topic, and creates it again once it has been missing for so long."""
        wait_until(self._try_to_delete, f"{self.name} is deleted", _END_S, 0.5)
        pause.wait(missing_s)
        self.create()

    def _try_to_create(self) -> bool:
        try:
            self._admin.create_topics([self._new]).raise_for_errors()
        except TopicExistsError:
            return True  # by a call before this one, whose response was lost
        except KafkaTimeoutError:
            return False
        return True

    def _try_to_delete(self) -> bool:
        try:
            self._admin.delete_topics([self.name]).raise_for_errors()
        except UnknownTopicOrPartitionError:
            return True
        except KafkaTimeoutError:
            return False
        return self.name not in {one.name for one in self._admin.list_topics()}
