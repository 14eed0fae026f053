from typing import NoReturn

import pytest

from kclient.common.foreign_names import missing_attribute, unexpected_keyword


class Client:
    def send(self) -> None: ...

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(self, name, {"produce": "use send()"})


def test_a_known_name_is_answered_with_the_right_one() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = Client().produce
    assert str(caught.value) == "'Client' object has no attribute 'produce'; use send()"
    assert caught.value.name == "produce"


def test_an_unknown_name_is_reported_as_python_does() -> None:
    client = Client()
    with pytest.raises(AttributeError) as caught:
        _ = client.sent
    assert str(caught.value) == "'Client' object has no attribute 'sent'"
    assert (caught.value.name, caught.value.obj) == ("sent", client)  # Python suggests `send`
    assert not hasattr(client, "produce")
    assert "produce" not in dir(client)


def test_keywords() -> None:
    hints = {"timeout_ms": "use timeout=, in seconds"}
    assert str(unexpected_keyword("poll", "timeout_ms", hints)) == (
        "poll() got an unexpected keyword argument 'timeout_ms'; use timeout=, in seconds"
    )
    assert str(unexpected_keyword("poll", "other", hints)).endswith("argument 'other'")
