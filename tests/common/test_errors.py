"""Errors that have no code of the protocol."""

from kclient.common import broker_errors
from kclient.common.broker_errors import code_of
from kclient.common.errors import (
    BufferExhaustedError,
    ConfigError,
    FatalError,
    KafkaTimeoutError,
)


def test_local_errors_have_no_code_and_derive_from_builtins() -> None:
    assert BufferExhaustedError.code is None
    assert issubclass(BufferExhaustedError, TimeoutError)
    assert issubclass(broker_errors.RequestTimedOutError, KafkaTimeoutError)
    assert issubclass(broker_errors.ProducerFencedError, FatalError)
    assert issubclass(ConfigError, ValueError)
    assert code_of(ConfigError("x")) == -1
