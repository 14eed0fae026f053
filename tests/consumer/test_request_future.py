"""Completion of request futures, their listeners and the futures chained to them."""

import pytest

from kclient.common.errors import DisconnectedError, IllegalStateError, KafkaTimeoutError
from kclient.consumer.request_future import RequestFuture

LOST = DisconnectedError("lost")


@pytest.fixture
def future() -> RequestFuture[int]:
    return RequestFuture()


def test_value_of_an_incomplete_future_is_refused(future: RequestFuture[int]) -> None:
    assert (future.done, future.succeeded, future.failed) == (False, False, False)
    with pytest.raises(IllegalStateError, match="not complete"):
        assert future.value


def test_value_of_a_failed_future_raises_its_error(future: RequestFuture[int]) -> None:
    future.fail(LOST)
    assert (future.done, future.succeeded, future.failed) == (True, False, True)
    with pytest.raises(DisconnectedError, match="lost"):
        assert future.value


def test_first_outcome_is_kept(future: RequestFuture[int]) -> None:
    future.succeed(1)
    future.succeed(2)
    future.fail(LOST)
    assert (future.value, future.error) == (1, None)
    failed = RequestFuture[int]()
    failed.fail(LOST)
    failed.fail(KafkaTimeoutError("late"))
    failed.succeed(3)
    assert (failed.error, failed.succeeded) == (LOST, False)


def test_listeners_are_called_once_in_order(future: RequestFuture[int]) -> None:
    called: list[str] = []
    future.on_done(lambda done: called.append(f"first {done.value}"))
    future.on_done(lambda done: called.append(f"second {done.value}"))
    assert called == []
    future.succeed(5)
    future.on_done(lambda done: called.append(f"late {done.value}"))
    future.fail(LOST)
    assert called == ["first 5", "second 5", "late 5"]


def test_listener_may_add_a_listener(future: RequestFuture[int]) -> None:
    called: list[int] = []
    future.on_done(lambda done: done.on_done(lambda again: called.append(again.value)))
    future.succeed(7)
    assert called == [7]


def test_chained_future_has_the_adapted_value(future: RequestFuture[int]) -> None:
    chained = future.then(str)
    assert not chained.done
    future.succeed(4)
    assert chained.value == "4"
    assert RequestFuture.of(3).then(lambda value: value + 1).value == 4


def test_error_fails_the_chained_future_and_is_reported(future: RequestFuture[int]) -> None:
    errors: list[Exception] = []
    chained = future.then(str, errors.append)
    future.fail(LOST)
    assert (chained.error, errors) == (LOST, [LOST])


def test_error_of_the_adapter_fails_the_chained_future_only(future: RequestFuture[int]) -> None:
    def refuse(value: int) -> str:
        raise KafkaTimeoutError(f"refused {value}")

    errors: list[str] = []
    chained = future.then(refuse, lambda error: errors.append(str(error)))
    future.succeed(9)
    assert (future.error, str(chained.error), errors) == (None, "refused 9", ["refused 9"])
    assert chained.error is not None
    assert chained.error.__traceback__ is None, "its frames would keep the consumer alive"


def test_bug_in_the_adapter_is_not_hidden(future: RequestFuture[int]) -> None:
    chained = future.then(lambda value: value // 0)
    with pytest.raises(ZeroDivisionError):
        future.succeed(1)
    assert not chained.done
