"""Types of control records."""

import struct
from enum import IntEnum

from kclient.common.broker_errors import CorruptRecordError
from kclient.common.files import WireBytes

_KEY = struct.Struct(">hh")
_CURRENT_VERSION = 0


class ControlRecordType(IntEnum):
    """Type of a control record, from its key (Kafka: ControlRecordType)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    def record_key(self) -> bytes:
        """Return the key of a control record of this type."""
        return _KEY.pack(_CURRENT_VERSION, self)

    @classmethod
    def parse(cls, key: WireBytes | None) -> "ControlRecordType":
        """Return the type in a control record's key; UNKNOWN for types of later versions.

        Raises:
            CorruptRecordError: The key is too short or its version negative.
        """
        if key is None or len(key) < _KEY.size:
            size = "none" if key is None else f"{len(key)} bytes"
            raise CorruptRecordError(f"control record key: got {size}, expected 4 bytes")
        version, kind = _KEY.unpack_from(key)
        if version < _CURRENT_VERSION:
            raise CorruptRecordError(f"control record key: got version {version}, expected >= 0")
        return cls(kind) if kind in cls._value2member_map_ else cls.UNKNOWN
