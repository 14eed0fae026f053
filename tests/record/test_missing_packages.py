"""Missing packages of codecs: errors are reported and no data is skipped."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient import Consumer, Producer, TopicPartition
from kclient.common.broker_errors import UnsupportedCompressionTypeError
from kclient.common.errors import ConfigError
from kclient.record import CompressionType, codec_library, compress
from kclient.testing import EmbeddedCluster
from tests.support.checks.decompression import decompressed

ROOT = Path(__file__).parents[2]

PACKAGES = [
    ("snappy", "snappy", "python-snappy"),
    ("lz4", "lz4.frame", "lz4"),
    ("zstd", "zstandard", "zstandard"),
]
CODECS = ["none", "gzip", *(codec for codec, _, _ in PACKAGES)]


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Clear the cache of imported codecs before and after each test."""
    codec_library.cache_clear()
    yield
    codec_library.cache_clear()


@pytest.fixture(params=PACKAGES, ids=lambda each: each[0])
def missing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A codec whose package cannot be imported, and the name of the package."""
    codec, module, package = request.param
    monkeypatch.setitem(sys.modules, module, None)
    return codec, package


def test_error_names_codec_and_package(missing: tuple[str, str]) -> None:
    codec, package = missing
    kind = CompressionType[codec.upper()]
    text = f"compression type '{codec}': the package '{package}' cannot be imported: .*; install"
    with pytest.raises(UnsupportedCompressionTypeError, match=text):
        compress(kind, b"data", 1)  # with the default level an idle compressor may serve
    with pytest.raises(UnsupportedCompressionTypeError, match=text):
        decompressed(kind, b"\x01\x00data")


def test_other_codecs_work(missing: tuple[str, str]) -> None:
    for codec in CODECS:
        if codec != missing[0]:
            kind = CompressionType[codec.upper()]
            assert bytes(decompressed(kind, compress(kind, b"data"))) == b"data"


def test_producer_creation_fails_without_codec_package(missing: tuple[str, str]) -> None:
    codec, package = missing
    text = f"compression_type: got '{codec}', expected a codec that is installed; .*'{package}'"
    with pytest.raises(ConfigError, match=text):
        Producer({"compression_type": codec}, bootstrap_servers="127.0.0.1:1")


@pytest.mark.parametrize(("codec", "module", "package"), PACKAGES)
def test_consumer_reports_missing_codec_and_skips_no_record(
    codec: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
        for kind, value in (("none", b"before"), (codec, b"inside"), ("none", b"after")):
            with Producer({"bootstrap.servers": servers, "compression.type": kind}) as producer:
                producer.send("t", value * 100, partition=0).result(20)
        codec_library.cache_clear()
        with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            place = TopicPartition("t", 0)
            consumer.assign([place])
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, module, None)
                seen = read_until_error(consumer, f"the package '{package}' cannot be imported")
                assert (seen, consumer.position(place)) == ([b"before" * 100], 1)
                with pytest.raises(UnsupportedCompressionTypeError):
                    consumer.poll()
                assert consumer.position(place) == 1
            rest: list[object] = []
            while len(rest) < 2:
                rest += [record.value for record in consumer.poll()]
    assert rest == [b"inside" * 100, b"after" * 100]


def read_until_error(consumer: Consumer, text: str) -> list[object]:
    seen: list[object] = []

    def read_on() -> None:
        while True:
            seen.extend(record.value for record in consumer.poll())

    with pytest.raises(UnsupportedCompressionTypeError, match=text):
        read_on()
    return seen


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=ROOT
    )
    return done.stdout + done.stderr


def test_codecs_are_imported_at_first_use() -> None:
    code = (
        "import sys; from kclient import Producer, Consumer, AdminClient;"
        "print({'lz4', 'snappy', 'zstandard', 'cramjam'} & sys.modules.keys())"
    )
    assert run(code) == "set()\n"


def test_kclient_is_importable_without_codecs() -> None:
    code = (
        "import sys\n"
        "for name in ('lz4', 'snappy', 'zstandard'): sys.modules[name] = None\n"
        "from kclient import Producer\n"
        "Producer(bootstrap_servers='127.0.0.1:1').close()\n"
        "print('fine')"
    )
    assert run(code).startswith("fine\n")


def test_import_error_names_missing_checksum_package() -> None:
    code = "import sys; sys.modules['crc32c'] = None; from kclient import Producer"
    assert "ImportError: kclient needs the package 'crc32c' for the checksums" in run(code)
