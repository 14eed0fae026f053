"""Writes foreign_batches.json: record batches built by other implementations.

Run by hand when a vector is added::

    python tests/record/golden/generate.py [class path of kafka-clients and its codecs]

Without a class path the batches of Apache Kafka's own classes are kept as they are. The versions of
the packages that built the batches are kept with them; the vectors need not follow the packages.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

Fields = dict[str, Any]

HERE = Path(__file__).parent
TARGET = HERE / "foreign_batches.json"
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BASE_TIMESTAMP = 1_700_000_000_000

PLAIN: list[Fields] = [
    {
        "timestamp": BASE_TIMESTAMP + i * 7,
        "key": f"key-{i}",
        "value": f"value {i} " * 3,
        "headers": [],
    }
    for i in range(12)
]
ODD: list[Fields] = [
    {"timestamp": BASE_TIMESTAMP + 5, "key": None, "value": "first", "headers": []},
    {"timestamp": BASE_TIMESTAMP - 5000, "key": "older", "value": None, "headers": []},
    {"timestamp": BASE_TIMESTAMP + 10**9, "key": "", "value": "", "headers": []},
    {
        "timestamp": BASE_TIMESTAMP,
        "key": "k" * 100,
        "value": "v" * 900,
        "headers": [["trace", "abc"], ["ünïcode", ""], ["trace", None]],
    },
]

STATES: list[Fields] = [
    {"is_transactional": False, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1},
    {"is_transactional": False, "producer_id": 4000, "producer_epoch": 3, "base_sequence": 77},
    {
        "is_transactional": True,
        "producer_id": 2**40,
        "producer_epoch": 0,
        "base_sequence": 2**31 - 3,
    },
]

CASES = [
    (codec, state, records)
    for codec in CODECS
    for state, records in zip(STATES, (PLAIN, ODD, PLAIN[:8]), strict=True)
]


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def build(builder_class: Any, codec: str, state: Fields, records: list[Fields]) -> str:
    builder = builder_class(magic=2, compression_type=CODECS[codec], batch_size=1 << 20, **state)
    for index, record in enumerate(records):
        added = builder.append(
            index,
            timestamp=record["timestamp"],
            key=raw(record["key"]),
            value=raw(record["value"]),
            headers=[(name, raw(value)) for name, value in record["headers"]],
        )
        assert added is not None
    return bytes(builder.build()).hex()


def hexed(text: str | None) -> str:
    return "-" if text is None else "x" + text.encode().hex()


def commands() -> Iterator[str]:
    for codec, state, records in CASES:
        yield " ".join(
            ["B", codec, str(state["is_transactional"]).lower()]
            + [str(state[name]) for name in ("producer_id", "producer_epoch", "base_sequence")]
        )
        for record in records:
            headers = [f"{hexed(name)}={hexed(value)}" for name, value in record["headers"]]
            fields = [str(record["timestamp"]), hexed(record["key"]), hexed(record["value"])]
            yield " ".join(["R", *fields, *headers])
        yield "E"


def built_by_kafka(class_path: str) -> list[Fields]:
    found = re.search(r"kafka-clients-([\d.]+)\.jar", class_path)
    assert found is not None, "the class path names no kafka-clients jar"
    ran = subprocess.run(
        ["java", "-cp", class_path, str(HERE / "KafkaBatches.java")],
        input="\n".join(commands()),
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        {"source": f"apache-kafka {found[1]}", "codec": codec, **state, "records": rows, "hex": out}
        for (codec, state, rows), out in zip(CASES, ran.stdout.split(), strict=True)
    ]


def main() -> None:
    if len(sys.argv) > 1:
        batches = built_by_kafka(sys.argv[1])
    else:
        kept: list[Fields] = json.loads(TARGET.read_text())
        batches = [batch for batch in kept if batch["source"].startswith("apache-kafka")]
    batches += [
        {
            "source": f"{package} {version(package)}",
            "codec": codec,
            **state,
            "records": records,
            "hex": build(builder, codec, state, records),
        }
        for package, builder in (
            ("kafka-python", KafkaPythonBuilder),
            ("aiokafka", AiokafkaBuilder),
        )
        for codec, state, records in CASES
    ]
    TARGET.write_text(json.dumps(batches, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
