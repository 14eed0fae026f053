"""Writes foreign_batches.json: record batches built by other implementations.

Run by hand when a vector is added: ``python tests/record/golden/generate.py``. The versions of the
packages that built the batches are kept with them; the vectors need not follow the packages.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BASE_TIMESTAMP = 1_700_000_000_000

PLAIN: list[dict[str, Any]] = [
    {
        "timestamp": BASE_TIMESTAMP + i * 7,
        "key": f"key-{i}",
        "value": f"value {i} " * 3,
        "headers": [],
    }
    for i in range(12)
]
ODD: list[dict[str, Any]] = [
    {"timestamp": BASE_TIMESTAMP + 5, "key": None, "value": "first", "headers": []},
    {"timestamp": BASE_TIMESTAMP - 5000, "key": "older", "value": None, "headers": []},
    {"timestamp": BASE_TIMESTAMP + 10**9, "key": "", "value": "", "headers": []},
    {
        "timestamp": BASE_TIMESTAMP,
        "key": "k" * 100,
        "value": "v" * 900,
        "headers": [["trace", "abc"], ["ünïcode", ""], ["trace", "again"]],
    },
]

STATES = [
    {"is_transactional": False, "producer_id": -1, "producer_epoch": -1, "base_sequence": -1},
    {"is_transactional": False, "producer_id": 4000, "producer_epoch": 3, "base_sequence": 77},
    {
        "is_transactional": True,
        "producer_id": 2**40,
        "producer_epoch": 0,
        "base_sequence": 2**31 - 3,
    },
]


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def build(
    builder_class: Any, codec: str, state: dict[str, Any], records: list[dict[str, Any]]
) -> str:
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


def main() -> None:
    batches = [
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
        for codec in CODECS
        for state, records in zip(STATES, (PLAIN, ODD, PLAIN[:8]), strict=True)
    ]
    target = Path(__file__).with_name("foreign_batches.json")
    target.write_text(json.dumps(batches, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
