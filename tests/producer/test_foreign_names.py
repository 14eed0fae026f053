"""Hints for methods of other clients name methods that exist."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import AdminClient, Producer, aio
from kclient.aio.foreign_producer_names import PRODUCER_NAMES as AIO_PRODUCER_NAMES
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.foreign_names import FUTURE_NAMES, PRODUCER_NAMES, SEND, SEND_MANY

_CALL = re.compile(r"\b([a-z_]+)\(")
_OWNERS = (Producer, DeliveryFuture, AdminClient)


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (Producer, PRODUCER_NAMES),
        (aio.Producer, AIO_PRODUCER_NAMES),
        (DeliveryFuture, FUTURE_NAMES),
    ],
)
def test_names_are_not_methods_of_the_class(owner: type, names: dict[str, str]) -> None:
    present = [name for name in names if name in dir(owner)]
    assert present == []


@pytest.mark.parametrize("hint", sorted({*PRODUCER_NAMES.values(), *FUTURE_NAMES.values()}))
def test_hint_names_existing_methods(hint: str) -> None:
    for name in _CALL.findall(hint):
        assert any(hasattr(owner, name) for owner in _OWNERS), name


@pytest.mark.parametrize("hint", sorted(set(AIO_PRODUCER_NAMES.values())))
def test_hint_of_asyncio_producer_awaits_its_coroutines(hint: str) -> None:
    for found in _CALL.finditer(hint):
        method = getattr(aio.Producer, found[1], None) or getattr(aio.AdminClient, found[1])
        if inspect.iscoroutinefunction(method):
            assert hint[: found.start()].endswith("await "), hint


@pytest.mark.parametrize("names", [PRODUCER_NAMES, AIO_PRODUCER_NAMES])
def test_start_names_the_call_that_transactions_need(names: dict[str, str]) -> None:
    assert "init_transactions()" in names["start"]


@pytest.fixture
def producer() -> Iterator[Any]:
    with Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=0) as made:
        yield made


def test_keywords_of_send_name_what_to_use(producer: Any) -> None:
    for name, hint in SEND.items():
        with pytest.raises(TypeError) as caught:
            producer.send("t", b"x", **{name: 1})
        assert str(caught.value) == (
            f"Producer.send() got an unexpected keyword argument {name!r}; {hint}"
        )
    for name, hint in SEND_MANY.items():
        with pytest.raises(TypeError, match=f"{name}'; ") as caught:
            producer.send_many("t", [b"x"], **{name: 1})
        assert str(caught.value).endswith(hint)


def test_other_errors_of_arguments_stay_as_they_are(producer: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'unknown'"):
        producer.send("t", b"x", unknown=1)
    with pytest.raises(TypeError, match="on_delivery: got 1"):
        producer.send("t", b"x", on_delivery=1)
    with pytest.raises(TypeError, match="positional argument"):
        producer.send()


def test_producer_has_no_length_but_is_true(producer: Any) -> None:
    assert producer
    with pytest.raises(TypeError, match="a producer has no length; flush"):
        len(producer)
