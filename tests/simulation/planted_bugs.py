"""Bugs to put into clients and broker, one at a time: the simulation has to find each.

Each is a small change of the kind that a tired programmer makes. `plant` makes it for the time of a
``with`` block; nothing of it is left behind.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from kclient.broker.coordinator.group.group_offsets import GroupOffsets
from kclient.broker.coordinator.group.membership import Membership
from kclient.broker.log.log_maintenance import LogMaintenance
from kclient.broker.log.log_segment import LogSegment
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.client.in_flight_requests import InFlightRequests
