"""Guarantees of the configuration of a run."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promises:
    """Guarantees of the configuration of a run.

    Attributes:
        idempotent: Records are written once, in the order of `send`.
        ordered: Acknowledged records keep the order of `send`.
        acknowledged: Acknowledged records are in the log (acks is not 0).
        open_ms: Longest time for which a transaction is open while the broker runs.
    """

    idempotent: bool
    ordered: bool
    acknowledged: bool
    open_ms: float = math.inf
