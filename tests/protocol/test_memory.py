"""Memory of decoding large messages, measured against the limit of `kclient.protocol.memory`.

Small messages are measured in test_hostile_bytes.py; these are around the 8 MiB up to which a
message may unfold 32-fold, where a tracer would be too slow.
"""

import subprocess
import sys

import pytest

from kclient.protocol.memory import MEBIBYTE, allowance

PROGRAM = """
import resource, sys
from kclient.common.errors import ProtocolError
from kclient.protocol.memory import MEBIBYTE
from kclient.protocol.messages.topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import FetchRequest, ForgottenTopic
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kclient.protocol.messages.group_membership import SyncGroupResponse

def repeated(kind, version, name, element, size):
    one, two = (kind(**{name: [element] * n}).encode_bytes(version) for n in (99, 100))
    # An array of 99 elements has a count of one byte; here it gets one of five.
    step, at = len(two) - len(one), one.index(b"\\x64")
    count = (size - 5) // step
    piece = two[at + 1 : at + 1 + step]
    n, front = count + 1, bytearray()
    for _ in range(4):
        front.append(n & 127 | 128)
        n >>= 7
    front.append(n)
    return kind, version, one[:at] + bytes(front) + piece * count + one[at + 1 + 99 * step :]

def shape(name, size):
    if name == "strings":
        return repeated(DeleteTopicsRequest, 4, "topic_names", "ab", size)
    if name == "structs":
        return repeated(FetchRequest, 12, "forgotten_topics_data", ForgottenTopic(), size)
    if name == "topics":
        return repeated(MetadataResponse, 9, "topics", MetadataResponseTopic(name=""), size)
    whole = SyncGroupResponse(assignment=bytes(size))
    return SyncGroupResponse, 4, whole.encode_bytes(4)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

name, size = sys.argv[1], int(sys.argv[2])
kind, version, small = shape(name, 2000)
try:
    kind.decode(small, version)  # generates the decoder
except ProtocolError:
    pass
kind, version, data = shape(name, size)
peak_before = peak()
try:
    kind.decode(data, version)
    outcome = "decoded"
except ProtocolError as error:
    outcome = str(error)
print(len(data), peak() - peak_before, outcome)
"""


def decoded(shape: str, size: int) -> tuple[int, int, str]:
    """Decode a message of about this size; return its size, the memory taken, the outcome."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, shape, str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    length, taken, outcome = ran.stdout.split(maxsplit=2)
    return int(length), int(taken), outcome.strip()


def test_allowance_factor_changes_at_8_mib() -> None:
    assert allowance(0) == MEBIBYTE
    assert allowance(8 * MEBIBYTE) == MEBIBYTE + 32 * 8 * MEBIBYTE
    assert allowance(8 * MEBIBYTE + 1) - allowance(8 * MEBIBYTE) == 4
    assert allowance(100 * MEBIBYTE) == MEBIBYTE + 4 * 100 * MEBIBYTE + 28 * 8 * MEBIBYTE


@pytest.mark.fault("P5")
@pytest.mark.parametrize(
    ("shape", "mebibytes", "refused"),
    [
        ("strings", 7.99, False),  # 24-fold: three bytes of wire are a str
        ("strings", 9, False),
        ("strings", 16, True),
        ("structs", 7.99, True),
        ("topics", 8, True),
        ("bytes", 24, False),  # a single field, copied once
    ],
)
def test_large_messages_stay_within_allowance(shape: str, mebibytes: float, refused: bool) -> None:
    size, taken, outcome = decoded(shape, int(mebibytes * MEBIBYTE))
    assert size >= int(mebibytes * MEBIBYTE) - 100
    # The text of strings comes on top, at most four times its bytes.
    assert taken <= allowance(size) + 4 * size
    if refused:
        assert "may expand to" in outcome
        assert taken <= 8 * MEBIBYTE
    else:
        assert outcome == "decoded"
