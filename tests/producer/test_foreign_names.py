"""Hints for methods of other clients name methods that exist."""

import re

import pytest

from kclient import AdminClient, Producer
from kclient.producer.delivery_future import DeliveryFuture
from kclient.producer.foreign_names import FUTURE_NAMES, PRODUCER_NAMES

_CALL = re.compile(r"\b([a-z_]+)\(")
_OWNERS = (Producer, DeliveryFuture, AdminClient)


@pytest.mark.parametrize(
    ("owner", "names"), [(Producer, PRODUCER_NAMES), (DeliveryFuture, FUTURE_NAMES)]
)
def test_names_are_not_methods_of_the_class(owner: type, names: dict[str, str]) -> None:
    present = [name for name in names if name in dir(owner)]
    assert present == []


@pytest.mark.parametrize("hint", sorted({*PRODUCER_NAMES.values(), *FUTURE_NAMES.values()}))
def test_hint_names_existing_methods(hint: str) -> None:
    for name in _CALL.findall(hint):
        assert any(hasattr(owner, name) for owner in _OWNERS), name
