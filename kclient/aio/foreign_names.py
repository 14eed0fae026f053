"""Method names that all clients of aiokafka have, and their replacements."""

from collections.abc import Mapping

LIFECYCLE_NAMES: Mapping[str, str] = {
    "start": "it starts with its first call; use async with",
    "stop": "use await close()",
}
