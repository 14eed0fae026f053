"""Tools for users' tests."""

from kclient.testing.embedded_cluster import EmbeddedCluster
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_proxy import FaultProxy
from kclient.testing.fault_rule import Ending, FaultRule

__all__ = ["Direction", "EmbeddedCluster", "Ending", "FaultProxy", "FaultRule", "Frame"]
