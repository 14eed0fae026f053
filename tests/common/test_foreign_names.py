from typing import Any, NoReturn

import pytest

from kclient.common.foreign_names import WithForeignNames, missing_attribute, unexpected_keyword


class Client:
    def send(self) -> None: ...

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(self, name, {"produce": "use send()"})


def test_error_of_foreign_name_has_replacement() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = Client().produce
    assert str(caught.value) == "'Client' object has no attribute 'produce'; use send()"
    assert caught.value.name == "produce"


def test_unknown_name_raises_plain_attribute_error() -> None:
    client = Client()
    with pytest.raises(AttributeError) as caught:
        _ = client.sent
    assert str(caught.value) == "'Client' object has no attribute 'sent'"
    assert (caught.value.name, caught.value.obj) == ("sent", client)  # Python suggests `send`
    assert not hasattr(client, "produce")
    assert "produce" not in dir(client)


class Future(metaclass=WithForeignNames, foreign_names={"get": "use result()"}):
    __slots__ = ("done",)

    def result(self) -> None: ...


class Special(Future):
    def __init__(self) -> None:
        self.own = 1


@pytest.mark.parametrize("kind", [Future, Special])
def test_metaclass_raises_same_error_without_getattr(kind: type) -> None:
    owners: list[Any] = [kind(), kind]
    for owner in owners:
        with pytest.raises(AttributeError) as caught:
            _ = owner.get
        assert str(caught.value) == f"{kind.__name__!r} object has no attribute 'get'; use result()"
        assert not hasattr(owner, "get")
        assert "get" not in dir(owner)
        assert "result" in dir(owner)
    assert "own" in dir(Special())
    assert "__getattr__" not in dir(kind)


def test_keywords() -> None:
    hints = {"timeout_ms": "use timeout=, in seconds"}
    assert str(unexpected_keyword("poll", "timeout_ms", hints)) == (
        "poll() got an unexpected keyword argument 'timeout_ms'; use timeout=, in seconds"
    )
    assert str(unexpected_keyword("poll", "other", hints)).endswith("argument 'other'")
