"""Consumers of a worker process, kept from task to task.

Spark keeps its Python workers for the tasks to come. A new consumer for each of them would spend
more time on connections than on records.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kclient.common.runtime import Runtime
from kclient.consumer.consumer import Consumer

_Key = tuple[int, tuple[tuple[str, str], ...]]
_MOST = 8


class ConsumerCache:
    """Lends consumers, one for each configuration and process.

    A consumer is with one borrower at a time; a second one at the same time gets a new consumer.

    Args:
        runtime: Door to the world.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._idle: dict[_Key, Consumer] = {}

    @contextmanager
    def borrow(self, config: Mapping[str, str]) -> Iterator[Consumer]:
        """Lend a consumer; one whose borrower failed is not lent again.

        Args:
            config: Its configuration by dotted name.
        """
        key = (self._runtime.tasks.process_id(), tuple(sorted(config.items())))
        consumer = self._idle.pop(key, None) or Consumer(config, runtime=self._runtime)
        try:
            yield consumer
        except Exception:
            consumer.close()
            raise
        except BaseException:  # the task needs no more, or is ended: the consumer is sound
            self._put_back(key, consumer)
            raise
        self._put_back(key, consumer)

    def close(self) -> None:
        """Close the consumers that nobody has borrowed."""
        while self._idle:
            self._idle.popitem()[1].close()

    def _put_back(self, key: _Key, consumer: Consumer) -> None:
        self._forget_parents(key[0])
        while key not in self._idle and len(self._idle) >= _MOST:
            self._idle.pop(next(iter(self._idle))).close()
        before = self._idle.pop(key, None)
        self._idle[key] = consumer
        if before is not None:
            before.close()

    def _forget_parents(self, process_id: int) -> None:
        """Drop the consumers that a fork brought along: their connections are the parent's."""
        for key in [key for key in self._idle if key[0] != process_id]:
            del self._idle[key]
