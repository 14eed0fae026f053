"""``spark.readStream.format("kclient")`` on Spark 4.0 and 4.1."""

from kclient.spark.options.source_options import SourceOptions
from kclient.spark.source.stream_planner import UNRESOLVED
from kclient.spark.source.stream_reader import StoredOffset, StreamReader


class UnlimitedStreamReader(StreamReader):
    """The stream of Spark 4.0 and 4.1, which tell a source neither the start nor a limit."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._is_start_due: bool | None = None

    def initialOffset(self) -> StoredOffset:
        """Return where the stream starts."""
        found = super().initialOffset()
        if self._is_start_due is None:  # Spark asks twice
            self._is_start_due = found == UNRESOLVED
        return found

    # Spark below 4.2 calls it without arguments, and tells the two forms apart by them.
    def latestOffset(self) -> StoredOffset:  # type: ignore[override]
        """Return where the next micro-batch ends."""
        if self._is_start_due:
            self._is_start_due = False
            return dict(self.planner.resolved_start())
        return dict(self.planner.latest())
