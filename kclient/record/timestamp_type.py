"""Types of record timestamps."""

from enum import IntEnum


class TimestampType(IntEnum):
    """Type of a batch's timestamps (Kafka: TimestampType)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
