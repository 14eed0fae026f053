"""librdkafka's mock cluster: several brokers without a JVM.

It is part of the librdkafka of confluent-kafka, and is controlled by its C interface
(rdkafka_mock.h). Its brokers keep records in memory. Leaders and coordinators are set by the test;
members and offsets of a group are kept when its coordinator moves.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import confluent_kafka

from kclient.protocol.api_keys import ApiKey
from tests.support.checks.closing import Closing
from tests.support.checks.waiting import HarnessError

_PRODUCER = 0  # rd_kafka_type_t
_ERROR_TEXT = 512

# Versions that the mock advertises but cannot parse. In them strings and arrays are compact,
# but its handlers take the length of the array for an INT32 (JoinGroup's protocols, SyncGroup's
# assignments) and close the connection; and of LeaveGroup they know one member, where versions from
# 3 on carry an array of them. librdkafka itself never sends versions as new as these.
_READABLE = {ApiKey.JOIN_GROUP: 5, ApiKey.SYNC_GROUP: 3, ApiKey.LEAVE_GROUP: 2}


@cache
def _library() -> ctypes.CDLL:
    """Return the librdkafka that confluent-kafka's wheel has loaded."""
    package = Path(confluent_kafka.__file__).parent
    found = sorted(package.parent.glob("confluent_kafka.libs/librdkafka*"))
    if not found:
        msg = f"there is no librdkafka next to {package}: confluent-kafka is not from a wheel"
        raise HarnessError(msg)
    library = ctypes.CDLL(str(found[0]))
    for name in ("conf_new", "new", "mock_cluster_new"):
        getattr(library, f"rd_kafka_{name}").restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    library.rd_kafka_mock_get_requests.restype = ctypes.c_void_p
    return library


class MockCluster(Closing):
    """Brokers 1, 2, … on ports of their own; the end of the block stops them.

    Attributes:
        bootstrap_servers: The addresses of all of them.
    """

    def __init__(self, brokers: int = 3) -> None:
        self._library = _library()
        text = ctypes.create_string_buffer(_ERROR_TEXT)
        configuration = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        # The handle that contains the mock is a client without an address, which it would log.
        self._library.rd_kafka_conf_set(
            configuration, b"log_level", b"3", text, ctypes.c_size_t(_ERROR_TEXT)
        )
        handle = self._library.rd_kafka_new(
            _PRODUCER, configuration, text, ctypes.c_size_t(_ERROR_TEXT)
        )
        if not handle:
            msg = f"librdkafka makes no client: {text.value.decode()}"
            raise HarnessError(msg)
        self._handle = ctypes.c_void_p(handle)
        self._cluster = ctypes.c_void_p(
            self._library.rd_kafka_mock_cluster_new(self._handle, ctypes.c_int(brokers))
        )
        addresses: bytes = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster)
        self.bootstrap_servers = addresses.decode()
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(
            self._cluster, ctypes.c_int32(0)
        )
        for key, highest in _READABLE.items():
            self.limit_versions(key, 0, highest)

    # -- topics and brokers

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 3) -> None:
        self._do("topic_create", name.encode(), partitions, replicas)

    def delete_topic(self, name: str) -> None:
        self._do("topic_delete", name.encode())

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        """Set the leader of a partition, in a new epoch; -1 for none."""
        self._do("partition_set_leader", topic.encode(), partition, broker)

    def set_follower(self, topic: str, partition: int, broker: int) -> None:
        """Set the preferred read replica; -1 for none."""
        self._do("partition_set_follower", topic.encode(), partition, broker)

    def set_coordinator(self, group: str, broker: int) -> None:
        """Set the coordinator of a group."""
        self._do("coordinator_set", b"group", group.encode(), broker)

    def add_broker(self, broker: int) -> None:
        self._do("broker_add", broker)

    def remove_broker(self, broker: int) -> None:
        """Remove a broker, also from the metadata."""
        self._do("broker_decommission", broker)

    def advertise(self, broker: int, host: str, port: int) -> None:
        """Set the advertised address of a broker; it listens at the same address as before."""
        self._do("broker_set_host_port", broker, host.encode(), port)

    def limit_versions(self, key: ApiKey, lowest: int, highest: int) -> None:
        """Limit the versions of an API that all brokers advertise and serve."""
        self._do("set_apiversion", *(ctypes.c_int16(one) for one in (key, lowest, highest)))

    # -- faults

    def fail(self, key: ApiKey, *codes: int) -> None:
        """Return these error codes for the next requests of an API, at any broker."""
        errors = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(key), ctypes.c_size_t(len(codes)), errors
        )

    def fail_at(self, broker: int, key: ApiKey, *responses: tuple[int, int]) -> None:
        """Return (error code, after ms) for the next requests of an API at a broker."""
        pairs = [ctypes.c_int(part) for response in responses for part in response]
        self._do(
            "broker_push_request_error_rtts",
            broker,
            ctypes.c_int16(key),
            ctypes.c_size_t(len(responses)),
            *pairs,
        )

    def clear_failures(self, key: ApiKey) -> None:
        """Remove the errors that are set for an API."""
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(key))

    def set_round_trip(self, broker: int, milliseconds: int) -> None:
        """Delay each response of a broker."""
        self._do("broker_set_rtt", broker, milliseconds)

    def stop(self, broker: int) -> None:
        """Close a broker's connections, and refuse new ones."""
        self._do("broker_set_down", broker)

    def start(self, broker: int) -> None:
        self._do("broker_set_up", broker)

    # -- received requests

    def track(self) -> None:
        """Begin to record requests, for `requests`."""
        self._library.rd_kafka_mock_start_request_tracking(self._cluster)

    def requests(self, key: ApiKey) -> list[int]:
        """Return the ids of the brokers that received the requests of an API, in order."""
        count = ctypes.c_size_t()
        found = self._library.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        array = ctypes.cast(found, ctypes.POINTER(ctypes.c_void_p))
        received = []
        for number in range(count.value):
            request = ctypes.c_void_p(array[number])
            if self._library.rd_kafka_mock_request_api_key(request) == key:
                received.append(self._library.rd_kafka_mock_request_id(request))
        self._library.rd_kafka_mock_request_destroy_array(ctypes.c_void_p(found), count)
        return received

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._handle)

    def _do(self, what: str, *arguments: Any) -> None:
        call = getattr(self._library, f"rd_kafka_mock_{what}")
        code = call(self._cluster, *arguments)
        if code:
            msg = f"rd_kafka_mock_{what}{arguments}: librdkafka returned {code}"
            raise HarnessError(msg)
