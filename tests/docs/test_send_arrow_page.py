"""Examples of send-arrow-tables.md, in their order."""

from pathlib import Path
from typing import Any

import pytest

from kclient.testing.embedded_cluster import EmbeddedCluster
from tests.support.checks.document_blocks import blocks
from tests.support.clients.foreign import FOREIGN_CLIENTS

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "send-arrow-tables.md"
CODE = [code for section in blocks(PAGE, "python").values() for code in section]


def test_examples_send_what_kafka_python_reads(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster() as cluster:
        names: dict[str, Any] = {}
        for code in CODE:
            exec(code.replace("localhost:9092", cluster.bootstrap_servers), names)  # noqa: S102 (our own document)
        reader = FOREIGN_CLIENTS["kafka-python"](cluster.bootstrap_servers)
        topics = {name: reader.read_all(name) for name in ("orders", "payments", "orders-copy")}
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "3 records acknowledged"
    assert f"print(error)  # {printed[1]}\n" in PAGE.read_text()
    three = [(b"order-1", b"placed", ()), (b"order-1", b"paid", ()), (b"order-2", None, ())]
    placed = (None, b"placed", (("source", b"shop"),))
    assert [one.content for one in topics["orders"]] == [*three, placed, *three]
    assert topics["orders"][3].timestamp_ms == 1_767_225_600_000
    assert [one.content for one in topics["payments"]] == [(None, b"paid", ())]
    assert [one.content for one in topics["orders-copy"]] == [*three, placed]
