"""How much fetched data of one broker waits for the application."""


class NodeBacklog:
    """Bytes fetched from a broker and not handed out yet, against what its last answer brought.

    The next fetch goes out when half of the last answer is used up: then an answer is on its way
    while the rest is worked on, and no more than one and a half answers are held at a time.

    Attributes:
        bytes: Bytes that wait.
        moved: Whether bytes were used up since `moved` was last cleared.
    """

    __slots__ = ("_last_answer", "bytes", "moved")

    def __init__(self) -> None:
        self.bytes = 0
        self.moved = False
        self._last_answer = 0

    def add(self, size: int) -> None:
        """Count bytes that arrived, or that count again."""
        self.bytes += size

    def use(self, size: int) -> None:
        """Count bytes as used up or dropped."""
        self.bytes -= size
        self.moved = True

    def mark_answer(self, size: int) -> None:
        """Note the size of an answer that has come in."""
        self._last_answer = size
        self.moved = True

    def is_low(self) -> bool:
        """Return whether the next fetch should go out."""
        return self.bytes * 2 <= self._last_answer
