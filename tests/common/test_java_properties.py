"""Java's properties format."""

import pytest

from kclient.common.errors import ConfigError
from kclient.common.java_properties import escape_value, parse_properties


def values(text: str) -> dict[str, str]:
    found = parse_properties(text.encode("latin-1"), "file")
    return {name: each.value for name, each in found.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\nd\t4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("  a  =  1 \n", {"a": "1 "}),
        ("a = = 1\nb:=1\nc :: 1", {"a": "= 1", "b": "=1", "c": ": 1"}),
        ("# a=1\n!b=2\n  # c\n\nd=4#5", {"d": "4#5"}),
        ("a\nb=\nc:", {"a": "", "b": "", "c": ""}),
        ("=1", {"": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n#2", {"a": "1#2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("# no continuation \\\na=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        (r"a\=b\:c\ d=1", {"a=b:c d": "1"}),
        (r"a=\t\n\r\f\q\\\"", {"a": '\t\n\r\fq\\"'}),
        (r"a=\u00e4\u0041\ud83d\ude00", {"a": "\u00e4A\U0001f600"}),
        ("a=\xe4", {"a": "\u00e4"}),
        ("a=1\na=2", {"a": "2"}),
        ("", {}),
    ],
)
def test_files_have_the_values_that_java_reads(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_a_value_has_the_number_of_the_line_it_begins_in() -> None:
    found = parse_properties(b"# first\n\na=1\\\n  2\nb=3\n", "file")
    assert (found["a"].line, found["b"].line) == (3, 5)


@pytest.mark.parametrize("text", [r"a=C:\users", r"a=\u12", r"\u12g4=1"])
def test_an_invalid_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^file:2: got an invalid escape sequence, expected \\u"):
        parse_properties(f"\n{text}".encode(), "file")


@pytest.mark.parametrize(
    "value", ["x", " a b", "a\\b", "1=2:3", "a\nb=c", "\u00e4\U0001f600", "#!"]
)
def test_an_escaped_value_is_read_again(value: str) -> None:
    assert values(f"a={escape_value(value)}") == {"a": value}
