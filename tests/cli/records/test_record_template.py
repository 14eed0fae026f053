"""Format strings of records."""

import pytest

from kclient.cli.records.record_template import compile_template
from kclient.common.errors import InvalidArgumentError
from kclient.record import ConsumerRecord

FULL = ConsumerRecord(
    topic="orders",
    partition=2,
    offset=77,
    timestamp_ms=1_700_000_000_123,
    key=b"k\xff",
    value=b"caf\xc3\xa9",
    headers=[("a", b"1"), ("b", None), ("a", b"\xfe")],
)
NULLS = ConsumerRecord(topic="t", partition=0, offset=0)


@pytest.mark.parametrize(
    ("template", "full", "nulls"),
    [
        ("%s", b"caf\xc3\xa9", b""),
        ("%k", b"k\xff", b""),
        ("%S %K", b"5 2", b"-1 -1"),
        ("%R", b"\0\0\0\x05", b"\xff\xff\xff\xff"),
        ("%t[%p]@%o", b"orders[2]@77", b"t[0]@0"),
        ("%T", b"1700000000123", b"-1"),
        ("%h", b"a=1,b=NULL,a=\xfe", b""),
        ("100%%%%s", b"100%%s", b"100%%s"),
        (r"%o\t\n\r\\\x41\xFF", b"77\t\n\r\\A\xff", b"0\t\n\r\\A\xff"),
        ("%o \N{SNOWMAN}", "77 \N{SNOWMAN}".encode(), "0 \N{SNOWMAN}".encode()),
    ],
)
def test_tokens_and_escape_sequences(template: str, full: bytes, nulls: bytes) -> None:
    format_record = compile_template(template)
    assert (format_record(FULL), format_record(NULLS)) == (full, nulls)


@pytest.mark.parametrize("template", ["%", "%o%", "%q", "%\n", r"%o\q", r"\N%o", "%o\\"])
def test_invalid_templates_are_refused(template: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"(token|escape sequence): got .*, expected "):
        compile_template(template)
