"""Hot path of `Producer.send`: the code that runs for every record.

It exists twice with the same behaviour, as the record code does: compiled, in ``_speed.pyx``, and
as a readable reference. Both are base classes; the derived classes, in Python only, do what happens
per batch or less often. The compiled one is used if the compiled record code is.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from kclient.record import IMPLEMENTATION

if TYPE_CHECKING:
    from kclient.producer.hot_path.reference import (
        FastPath,
        OpenQueue,
        RecordHandle,
        SendPath,
        TopicView,
        all_bytes_or_none,
    )
else:
    from kclient.producer.hot_path import reference as _implementation

    if IMPLEMENTATION == "compiled":
        with suppress(ImportError):  # built without a compiler
            from kclient.producer.hot_path import _speed as _implementation
    FastPath = _implementation.FastPath
    OpenQueue = _implementation.OpenQueue
    RecordHandle = _implementation.RecordHandle
    SendPath = _implementation.SendPath
    TopicView = _implementation.TopicView
    all_bytes_or_none = _implementation.all_bytes_or_none

__all__ = ["FastPath", "OpenQueue", "RecordHandle", "SendPath", "TopicView", "all_bytes_or_none"]
