"""The error tree: what a caller may catch, and what each family means.

`KafkaError` is the root of everything this package raises on its own account. Errors that a broker
reports by code live in `kclient.common.broker_errors`; they hang under the families defined here.

Errors of wrong use also derive from the builtin a Python programmer expects (`ValueError`,
`TypeError`, `RuntimeError`, `TimeoutError`), so either spelling of `except` works.
"""

from typing import ClassVar


class KafkaError(Exception):
    """Root of every error raised by kclient.

    Attributes:
        code: Kafka's numeric error code, or None for an error that never crosses the wire.
        error_name: Kafka's name of the code, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable: Whether the same call may succeed later without a change by the caller.
        invalid_metadata: Whether the client's view of the cluster must be refreshed first.
        possibly_written: Whether the record that could not be delivered may be in the log
            nevertheless: it was sent, and no broker has said that it was not written.
    """

    code: ClassVar[int | None] = None
    error_name: ClassVar[str] = ""
    retriable: ClassVar[bool] = False
    invalid_metadata: ClassVar[bool] = False
    possibly_written: bool = False

    _by_code: ClassVar[dict[int, type["KafkaError"]]] = {}

    def __init_subclass__(cls, *, code: int | None = None, name: str = "") -> None:
        """Register a class of the protocol's error table under its code."""
        super().__init_subclass__()
        cls.code = code
        cls.error_name = name
        if code is not None:
            KafkaError._by_code[code] = cls

    @staticmethod
    def by_code(code: int) -> type["KafkaError"] | None:
        """Return the class registered for an error code, or None if the code is unknown."""
        return KafkaError._by_code.get(code)


class RetriableError(KafkaError):
    """A temporary condition: the same call may succeed later."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """A temporary condition; metadata is refreshed before the next attempt."""

    invalid_metadata = True


class FatalError(KafkaError):
    """The client that raised this cannot be used any more; close it."""


class ConfigError(KafkaError, ValueError):
    """A configuration value is missing, unknown or of the wrong form."""


class InvalidArgumentError(KafkaError, ValueError):
    """An argument has the right type and a value that cannot be used."""


class InvalidTypeError(KafkaError, TypeError):
    """An argument has a type that cannot be used."""


class IllegalStateError(KafkaError, RuntimeError):
    """The call is not allowed in the client's current state."""


class ClosedError(IllegalStateError):
    """The client was closed."""


class ForkedClientError(IllegalStateError):
    """The client was created in another process; create a new one after ``fork()``."""


class ConcurrentAccessError(IllegalStateError):
    """A consumer was used from two threads at once."""


class EventLoopError(IllegalStateError):
    """A call that waits was made inside a running event loop, which it would have blocked."""


class KafkaTimeoutError(RetriableError, TimeoutError):
    """The call did not finish within its deadline."""


class BufferExhaustedError(KafkaTimeoutError):
    """``buffer.memory`` stayed full for ``max.block.ms`` (Kafka: BufferExhaustedException)."""


class WakeupError(KafkaError):
    """`Consumer.wakeup` interrupted a blocking call (Kafka: WakeupException)."""


class SerializationError(KafkaError):
    """A key or a value could not be serialized or deserialized."""


class ProtocolError(KafkaError):
    """Bytes received do not follow Kafka's protocol."""


class InvalidReceiveError(ProtocolError):
    """A size prefix is negative or over the limit (Kafka: InvalidReceiveException)."""


class CompressionError(KafkaError):
    """A compressed payload is damaged, of an unknown codec, or larger than the limit."""


class DisconnectedError(InvalidMetadataError):
    """The connection was closed before the response arrived (Kafka: DisconnectException)."""


class CorrelationIdMismatchError(DisconnectedError):
    """A response does not belong to the oldest request in flight; the connection was closed."""


class BootstrapError(KafkaTimeoutError):
    """No bootstrap server could be reached; the text names each address with its own cause."""


class CommitFailedError(KafkaError):
    """The group has rebalanced: the partitions belong, or may belong, to another member now."""


class RetriableCommitFailedError(RetriableError):
    """A commit failed for a temporary reason and may be retried."""


class InvalidOffsetError(KafkaError):
    """A position cannot be used and no reset policy applies."""


class NoOffsetForPartitionError(InvalidOffsetError):
    """No committed offset exists and ``auto.offset.reset`` is ``none``."""
