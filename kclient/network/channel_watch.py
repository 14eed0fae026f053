"""Registration of channels with a poller, updated only when their interest changes."""

from typing import cast

from kclient.common.runtime import Poller
from kclient.network.kafka_channel import KafkaChannel


class ChannelWatch:
    """Interests of channels, as registered with the poller; each change costs a system call."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._registered: dict[str, int] = {}

    def add(self, channel: KafkaChannel) -> None:
        """Start watching a channel."""
        self._registered[channel.id] = channel.interest()
        self._poller.register(channel.transport.socket, self._registered[channel.id], channel)

    def refresh(self, channel: KafkaChannel) -> None:
        """Register the channel's present interest."""
        interest = channel.interest()
        if interest != self._registered[channel.id]:
            self._registered[channel.id] = interest
            self._poller.modify(channel.transport.socket, interest)

    def remove(self, channel: KafkaChannel) -> None:
        """Stop watching a channel, before it is closed."""
        if self._registered.pop(channel.id, None) is not None:
            self._poller.unregister(channel.transport.socket)

    def poll(self, timeout_ms: float) -> list[tuple[KafkaChannel, int]]:
        """Return the channels that are ready, with their ready events."""
        ready = self._poller.poll(max(0.0, timeout_ms))
        return [(cast("KafkaChannel", data), events) for data, events in ready]

    def wakeup(self) -> None:
        """Make the present or the next `poll` return at once."""
        self._poller.wakeup()

    def close(self) -> None:
        """Release the poller's own descriptors; idempotent."""
        self._poller.close()
