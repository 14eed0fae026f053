"""Future of a request (Kafka: RequestFuture)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from kclient.common.errors import IllegalStateError, KafkaError

T = TypeVar("T")
R = TypeVar("R")


class RequestFuture(Generic[T]):
    """Result of a request. Used only by the thread that holds `ConsumerLock`, so not locked."""

    __slots__ = ("_listeners", "_value", "done", "error")

    def __init__(self) -> None:
        self.done = False
        self.error: KafkaError | None = None
        self._value: T | None = None
        self._listeners: list[Callable[[RequestFuture[T]], None]] = []

    @classmethod
    def of(cls, value: T) -> "RequestFuture[T]":
        """Return a completed future."""
        future = cls()
        future.succeed(value)
        return future

    @property
    def value(self) -> T:
        """The value; raise the error of a future that failed."""
        if not self.done:
            raise IllegalStateError("the request is not complete")
        if self.error is not None:
            raise self.error
        return self._value  # type: ignore[return-value]  # T itself may be None

    @property
    def succeeded(self) -> bool:
        """Whether it completed with a value."""
        return self.done and self.error is None

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.error is not None

    def succeed(self, value: T) -> None:
        """Complete with a value; a completed future does not change."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: KafkaError) -> None:
        """Fail with an error; a completed future does not change.

        The error loses its traceback: its frames refer to their callers up to the application's,
        and would keep the consumer alive together with this future.
        """
        if not self.done:
            self.error = error.with_traceback(None)
            self._finish()

    def on_done(self, listener: "Callable[[RequestFuture[T]], None]") -> None:
        """Call `listener` with this future when it completes, or now if it is complete."""
        if self.done:
            listener(self)
        else:
            self._listeners.append(listener)

    def then(
        self,
        adapt: Callable[[T], R],
        on_error: Callable[[KafkaError], None] | None = None,
    ) -> "RequestFuture[R]":
        """Return the future of `adapt(value)`.

        Args:
            adapt: Returns the new value; a `KafkaError` it raises fails the new future.
            on_error: Called with the error, of this future or of `adapt`.
        """
        chained: RequestFuture[R] = RequestFuture()

        def relay(source: RequestFuture[T]) -> None:
            try:
                adapted = adapt(source.value)
            except KafkaError as error:
                if on_error is not None:
                    on_error(error)
                chained.fail(error)
            else:
                chained.succeed(adapted)

        self.on_done(relay)
        return chained

    def _finish(self) -> None:
        self.done = True
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(self)
