"""Sessions of brokers at the active controller (Kafka: BrokerHeartbeatManager).

The state is not in the metadata log: a new active controller starts all sessions again. What is in
the log, whether a broker is fenced or shutting down, is read from the image.
"""

from dataclasses import dataclass

from kclient.broker.metadata.metadata_image import MetadataImage

SESSION_TIMEOUT_MS = 9000
"""Default of ``broker.session.timeout.ms``."""
_NO_OFFSET = -1
_NO_LIMIT = 2**63 - 1


@dataclass(slots=True)
class _Session:
    """Contacts of a broker.

    Attributes:
        epoch: Broker epoch of the session.
        contact_ms: Time of the last contact.
        metadata_offset: Offset of the metadata log that the broker has reported.
        shutdown_offset: Offset that all active brokers must reach before it may stop; None unless
            it is shutting down.
    """

    epoch: int
    contact_ms: float
    metadata_offset: int = _NO_OFFSET
    shutdown_offset: int | None = None


class BrokerHeartbeatManager:
    """Times of contact and metadata offsets of the registered brokers.

    Times are monotonic, in ms.
    """

    def __init__(self, session_timeout_ms: float = SESSION_TIMEOUT_MS) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def start(self, image: MetadataImage, now_ms: float, own: tuple[int, bytes]) -> None:
        """Start a session of every broker that is not fenced, as a new active controller.

        An earlier life of this node has none: its process has ended, so that the broker of this
        process can register at once.

        Args:
            image: The committed image.
            now_ms: Monotonic time.
            own: Node id and incarnation id of this process.
        """
        self._sessions = {
            broker.id: _Session(broker.epoch, now_ms)
            for broker in image.brokers.values()
            if not broker.fenced and (broker.id != own[0] or broker.incarnation_id == own[1])
        }

    def touch(self, broker: int, epoch: int, metadata_offset: int, now_ms: float) -> None:
        """Note a heartbeat of a broker's current incarnation."""
        session = self._session(broker, epoch, now_ms)
        session.contact_ms = now_ms
        session.metadata_offset = max(session.metadata_offset, metadata_offset)

    def has_valid_session(self, broker: int, epoch: int, now_ms: float) -> bool:
        """Return whether an incarnation of a broker has been in contact within the timeout."""
        session = self._sessions.get(broker)
        if session is None or session.epoch != epoch:
            return False
        return now_ms - session.contact_ms < self.session_timeout_ms

    def start_shutdown(self, broker: int, epoch: int, offset: int, now_ms: float) -> None:
        """Note the offset of the last record of a broker's controlled shutdown."""
        session = self._session(broker, epoch, now_ms)
        if session.shutdown_offset is None or session.shutdown_offset < offset:
            session.shutdown_offset = offset

    def may_stop(self, image: MetadataImage, broker: int) -> bool:
        """Return whether all active brokers know of a broker's controlled shutdown."""
        session = self._sessions.get(broker)
        if session is None or session.shutdown_offset is None:
            # This controller was not active when the shutdown started: the end of the log includes
            # its records.
            return image.offset <= self.lowest_active_offset(image)
        return session.shutdown_offset <= self.lowest_active_offset(image)

    def lowest_active_offset(self, image: MetadataImage) -> int:
        """Return the lowest metadata offset that an active broker has reported."""
        offsets = [
            _NO_OFFSET if session is None else session.metadata_offset
            for broker in image.brokers.values()
            if broker.is_active
            for session in (self._sessions.get(broker.id),)
        ]
        return min(offsets, default=_NO_LIMIT)

    def stale_broker(self, image: MetadataImage, now_ms: float) -> int | None:
        """Return the broker without contact for longest that must be fenced, or None."""
        stale = [
            (contact_ms, broker.id)
            for broker in image.brokers.values()
            if not broker.fenced
            for contact_ms in (self._contact_ms(broker.id),)
            if now_ms - contact_ms >= self.session_timeout_ms
        ]
        return min(stale)[1] if stale else None

    def next_deadline_ms(self, image: MetadataImage) -> float | None:
        """Return the time at which the next session ends, None without sessions."""
        contacts = [
            self._contact_ms(broker.id) for broker in image.brokers.values() if not broker.fenced
        ]
        return min(contacts) + self.session_timeout_ms if contacts else None

    def _contact_ms(self, broker: int) -> float:
        session = self._sessions.get(broker)
        return float("-inf") if session is None else session.contact_ms

    def _session(self, broker: int, epoch: int, now_ms: float) -> _Session:
        session = self._sessions.get(broker)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker] = _Session(epoch, now_ms)
        return session
