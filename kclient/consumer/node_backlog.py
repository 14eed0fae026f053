"""Amount of buffered data per broker."""


class NodeBacklog:
    """Buffered bytes of one broker compared to the size of its last response.

    The next fetch is sent when half of the last response is consumed: the next response arrives
    while the rest is processed, and at most one and a half responses are buffered.

    Attributes:
        bytes: Buffered bytes.
        moved: Whether bytes were consumed since `moved` was last cleared.
    """

    __slots__ = ("_last_response_bytes", "bytes", "moved")

    def __init__(self) -> None:
        self.bytes = 0
        self.moved = False
        self._last_response_bytes = 0

    def add(self, size: int) -> None:
        """Add bytes that arrived, or that count again after a pause."""
        self.bytes += size

    def use(self, size: int) -> None:
        """Remove bytes that were consumed or dropped."""
        self.bytes -= size
        self.moved = True

    def mark_response(self, size: int) -> None:
        """Set the size of the last response."""
        self._last_response_bytes = size
        self.moved = True

    def is_low(self) -> bool:
        """Return whether the next fetch should be sent."""
        return self.bytes * 2 <= self._last_response_bytes
