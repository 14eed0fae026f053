"""Source code of generated functions."""

import traceback

import pytest

from kclient.protocol.source import Source


def test_blocks_indent_their_lines() -> None:
    source = Source()
    with source.block("def add(items):"):
        source.add("total = 0")
        with source.block("for item in items:"):
            source.add("total += item")
        source.add("return total")
    assert source.text == (
        "def add(items):\n    total = 0\n    for item in items:\n        total += item\n"
        "    return total\n"
    )
    assert source.compile("add", "sum v1")([1, 2, 3]) == 6


def test_empty_block_is_valid() -> None:
    source = Source()
    with source.block("def nothing():"):
        pass
    assert source.text == "def nothing():\n    pass\n"
    assert source.compile("nothing", "nothing v0")() is None


@pytest.mark.parametrize(("head", "text"), [("", "a = 1\n"), ("if b:", "if b:\n    a = 1\n")])
def test_optional_block_without_head_does_not_indent(head: str, text: str) -> None:
    source = Source()
    with source.optional_block(head):
        source.add("a = 1")
    assert source.text == text


def test_global_names_are_numbered_when_in_use() -> None:
    source = Source()
    assert [source.use("kind", value) for value in (int, str, int, bytes, str)] == [
        "kind",
        "kind_2",
        "kind",
        "kind_3",
        "kind_2",
    ]
    source.add("made = (kind, kind_2, kind_3)")
    with source.block("def kinds():"):
        source.add("return made")
    assert source.compile("kinds", "kinds v0")() == (int, str, bytes)


def test_notes_are_by_line_number() -> None:
    source = Source()
    source.add("a = 1")
    source.about = "topics[{i1}].name"
    source.add("b = 2")
    source.add("c = 3", (("x", 4), ("y", 2)))
    source.about = ""
    source.add("d = 4")
    assert source.notes == {2: (("topics[{i1}].name", 0),), 3: (("x", 4), ("y", 2))}


def test_traceback_shows_label_and_generated_line() -> None:
    source = Source()
    with source.block("def fail(value):"):
        source.add("return 1 // value")
    with pytest.raises(ZeroDivisionError) as caught:
        source.compile("fail", "Fetch v3")(0)
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "<Fetch v3 fail>", line 2, in fail' in text
    assert "return 1 // value" in text
