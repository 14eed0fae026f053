"""Files of arbitrary content: loading and dumping succeed or raise a KafkaError."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.broker.log.dump_log import DumpOptions, LogDump
from kclient.broker.log.log_config import LogConfig
from kclient.common.errors import KafkaError
from kclient.common.runtime import Runtime
from kclient.common.system_files import SystemFiles
from kclient.common.system_tasks import SystemTasks
from kclient.network.system_net import SystemNet
from kclient.record import CompressionType
from tests.support.disks.log_bench import LogBench, ManualClock, make_batch, offsets

CONFIG = LogConfig(segment_bytes=1500, index_interval_bytes=100, segment_index_bytes=120)
NAMES = [
    "00000000000000000000.log",
    "00000000000000000000.index",
    "00000000000000000000.timeindex",
    "00000000000000000000.txnindex",
    "00000000000000000000.snapshot",
    "leader-epoch-checkpoint",
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    bench = new_bench(tmp_path_factory.mktemp("template"))
    log = bench.open(CONFIG)
    for number in range(12):
        codec = CompressionType(number % len(CompressionType))
        log.append_as_leader(make_batch(5, producer=(1, 0, 5 * number), compression=codec), 0)
    log.close()
    return {path.name: path.read_bytes() for path in bench.directory.iterdir()}


def new_bench(data_dir: Path) -> LogBench:
    runtime = Runtime(ManualClock(), random.Random(1), SystemTasks(), SystemNet(), SystemFiles())
    return LogBench(runtime, data_dir)


def mutated(content: bytes, data: st.DataObject) -> bytes:
    if not content or data.draw(st.integers(0, 4)) == 0:
        return data.draw(st.binary(max_size=200))
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(changed) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    return bytes(changed[: data.draw(st.integers(len(changed) // 2, len(changed)))])


@given(data=st.data(), clean=st.booleans())
@settings(max_examples=40)
def test_arbitrary_damage_is_recovered_or_rejected(
    tmp_path_factory: pytest.TempPathFactory,
    template: dict[str, bytes],
    data: st.DataObject,
    clean: bool,
) -> None:
    bench = new_bench(tmp_path_factory.mktemp("damaged"))
    bench.directory.mkdir(parents=True)
    damaged = data.draw(st.sets(st.sampled_from(NAMES), min_size=1, max_size=3))
    for name, content in template.items():
        whole = name not in damaged
        (bench.directory / name).write_bytes(content if whole else mutated(content, data))
    found: list[int] = []
    try:
        log = bench.open(CONFIG, clean=clean)
        found = offsets(log)
        log.offset_for_timestamp(0)
        log.append_as_leader(make_batch(), 5)
        assert found == sorted(set(found))
        log.close()
    except KafkaError:
        pass
    finally:
        bench.close()
    assert not bench.failures.is_offline
    if not clean and damaged <= {NAMES[1], NAMES[2]}:
        assert found == list(range(60))


@given(data=st.data(), name=st.sampled_from(NAMES[:5]))
@settings(max_examples=60)
def test_dump_of_arbitrary_files(
    tmp_path_factory: pytest.TempPathFactory,
    template: dict[str, bytes],
    data: st.DataObject,
    name: str,
) -> None:
    directory = tmp_path_factory.mktemp("shown")
    for other, content in template.items():
        (directory / other).write_bytes(content)
    path = directory / name
    path.write_bytes(mutated(template.get(name, b""), data))
    for options in (DumpOptions(print_data=True), DumpOptions(index_sanity_check=True)):
        assert list(LogDump(SystemFiles(), path, options).lines())
