"""Error codes of the protocol, and their classes."""

import pytest

from kclient.common import broker_errors
from kclient.common.broker_errors import code_of, error_for_code
from kclient.common.errors import (
    InvalidMetadataError,
    KafkaError,
    RetriableError,
)

# Facts of the protocol: code, name, retriable, calls for fresh metadata.
SAMPLES = [
    (-1, "UNKNOWN_SERVER_ERROR", False, False),
    (2, "CORRUPT_MESSAGE", True, False),
    (3, "UNKNOWN_TOPIC_OR_PARTITION", True, True),
    (6, "NOT_LEADER_OR_FOLLOWER", True, True),
    (7, "REQUEST_TIMED_OUT", True, False),
    (10, "MESSAGE_TOO_LARGE", False, False),
    (27, "REBALANCE_IN_PROGRESS", False, False),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER", False, False),
    (56, "KAFKA_STORAGE_ERROR", True, True),
    (100, "UNKNOWN_TOPIC_ID", True, True),
    (133, "SHARE_SESSION_LIMIT_REACHED", True, False),
    (134, "GROUP_DELETION_FAILED", False, False),
    (135, "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", False, False),
    (136, "CONTROLLER_ID_NOT_REGISTERED", False, False),
]


@pytest.mark.parametrize(("code", "name", "retriable", "invalid_metadata"), SAMPLES)
def test_code_table(code: int, name: str, retriable: bool, invalid_metadata: bool) -> None:
    error = error_for_code(code, "why")
    assert error is not None
    assert (error.code, error.error_name) == (code, name)
    assert error.retriable is retriable
    assert error.invalid_metadata is invalid_metadata
    assert isinstance(error, RetriableError) is retriable
    assert isinstance(error, InvalidMetadataError) is invalid_metadata
    assert str(error) == f"{name}: why"
    assert code_of(error) == code


def test_every_error_code_has_a_class() -> None:
    classes = [KafkaError.by_code(code) for code in range(-1, 134)]
    assert [index - 1 for index, kind in enumerate(classes) if kind is None] == [0]
    assert error_for_code(broker_errors.NONE) is None


def test_unknown_code_is_in_error_text() -> None:
    error = error_for_code(9999)
    assert isinstance(error, broker_errors.UnknownServerError)
    assert "9999" in str(error)
