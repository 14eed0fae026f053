"""Tools for users' tests."""

from kclient.protocol.api_keys import ApiKey
from kclient.testing.broker_fault import BrokerFault, RequestSeen
from kclient.testing.broker_faults import BrokerFaults
from kclient.testing.embedded_cluster import EmbeddedCluster
from kclient.testing.fault_frames import Direction, Frame
from kclient.testing.fault_proxy import FaultProxy
from kclient.testing.fault_rule import Ending, FaultRule
from kclient.testing.service_profile import AZURE_EVENT_HUBS, OCI_STREAMING, ServiceProfile

__all__ = [
    "AZURE_EVENT_HUBS",
    "OCI_STREAMING",
    "ApiKey",
    "BrokerFault",
    "BrokerFaults",
    "Direction",
    "EmbeddedCluster",
    "Ending",
    "FaultProxy",
    "FaultRule",
    "Frame",
    "RequestSeen",
    "ServiceProfile",
]
