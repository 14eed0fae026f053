"""Base classes of the errors, and the errors without a code.

`KafkaError` is the base of all errors of this package. The errors that a broker returns by code are
in `kclient.common.broker_errors`; they derive from the classes defined here.

Errors of wrong use also derive from a builtin (`ValueError`, `TypeError`, `RuntimeError`,
`TimeoutError`), so that either can be caught.
"""

from typing import ClassVar


class KafkaError(Exception):
    """Base class of all errors raised by kclient.

    Attributes:
        code: Kafka's numeric error code, or None for an error of the client.
        error_name: Kafka's name of the code, such as ``NOT_LEADER_OR_FOLLOWER``.
        retriable: Whether the same call may succeed later without a change by the caller.
        invalid_metadata: Whether metadata must be updated before a retry.
        possibly_written: Whether the record may be in the log although its delivery failed: it was
            sent, and no broker has reported that it was not written.
        topic: Topic of the record whose delivery failed; None for other errors, unless their class
            has one.
        partition: Partition of that record, likewise.
        batch_index: Position of that record in its batch, from 0, if the broker rejected records of
            the batch by their positions (KIP-467); None otherwise.
    """

    code: ClassVar[int | None] = None
    error_name: ClassVar[str] = ""
    retriable: ClassVar[bool] = False
    invalid_metadata: ClassVar[bool] = False
    possibly_written: bool = False
    topic: str | None = None
    partition: int | None = None
    batch_index: int | None = None

    _by_code: ClassVar[dict[int, type["KafkaError"]]] = {}

    def __init_subclass__(cls, *, code: int | None = None, name: str = "") -> None:
        """Register a class under its error code."""
        super().__init_subclass__()
        cls.code = code
        cls.error_name = name
        if code is not None:
            KafkaError._by_code[code] = cls

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to pickle or copy the error: text and attributes, without the constructor.

        Constructors take other arguments than the text, which `args` has.
        """
        return _restored, (type(self), self.args), vars(self) or None

    @staticmethod
    def by_code(code: int) -> type["KafkaError"] | None:
        """Return the class registered for an error code, or None if the code is unknown."""
        return KafkaError._by_code.get(code)


def _restored(kind: type[KafkaError], args: tuple[object, ...]) -> KafkaError:
    error = kind.__new__(kind)
    error.args = args
    return error


class RetriableError(KafkaError):
    """A temporary condition: the same call may succeed later."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """A temporary condition; metadata is updated before the next attempt."""

    invalid_metadata = True


class FatalError(KafkaError):
    """The client is no longer usable; close it."""


class AuthenticationError(KafkaError):
    """One side refused to authenticate the other (Kafka: AuthenticationException).

    The calls that need the broker raise it at once: a retry with the same credentials fails, too.
    """


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed (Kafka: SslAuthenticationException)."""


class ConfigError(KafkaError, ValueError):
    """A configuration value is missing, unknown or of the wrong form."""


class InvalidArgumentError(KafkaError, ValueError):
    """An argument has an invalid value."""


class InvalidTypeError(KafkaError, TypeError):
    """An argument has an invalid type."""


class IllegalStateError(KafkaError, RuntimeError):
    """The call is not allowed in the client's current state."""


class ClosedError(IllegalStateError):
    """The client was closed."""


class ForkedClientError(IllegalStateError):
    """The client was created in another process; create a new one after ``fork()``."""


class ConcurrentAccessError(IllegalStateError):
    """A consumer was used from two threads at once."""


class EventLoopError(IllegalStateError):
    """A blocking call was made inside a running event loop."""


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


class CredentialsPendingError(DisconnectedError):
    """The connection was closed while its credentials are computed or requested."""


class CorrelationIdMismatchError(DisconnectedError):
    """A response does not belong to a request that was written; the connection was closed."""


class BootstrapError(KafkaTimeoutError):
    """No bootstrap server could be reached; the text has the cause for each address."""


class CommitFailedError(KafkaError):
    """The group has rebalanced: the partitions belong, or may belong, to another member now."""


class RetriableCommitFailedError(RetriableError):
    """A commit failed for a temporary reason and may be retried."""


class InvalidOffsetError(KafkaError):
    """A position cannot be used and no reset policy applies."""


class NoOffsetForPartitionError(InvalidOffsetError):
    """No committed offset exists and ``auto.offset.reset`` is ``none``."""
