import pytest

from kclient.common.errors import InvalidArgumentError, InvalidTypeError
from kclient.common.types import Node, TopicPartition, check_topic_name, topic_name_problem


@pytest.mark.parametrize("name", ["a", "a.b_c-D9", "x" * 249, "..."])
def test_valid_topic_names(name: str) -> None:
    assert check_topic_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a/b", "../x", "a\0b", "ä", "a b"])
def test_invalid_topic_names(name: str) -> None:
    assert topic_name_problem(name) is not None
    with pytest.raises(InvalidArgumentError, match="topic: got"):
        check_topic_name(name)


@pytest.mark.parametrize("name", [None, 3, b"a"])
def test_topic_names_are_str(name: object) -> None:
    with pytest.raises(InvalidTypeError, match="expected a topic name as str"):
        check_topic_name(name)


def test_texts() -> None:
    assert str(TopicPartition("t", 3)) == "t-3"
    assert str(Node(1, "h", 9092)) == "h:9092 (id: 1)"
