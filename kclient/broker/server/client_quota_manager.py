"""Quotas of clients: bytes produced and consumed, time of request handlers, changes of partitions.

A client is throttled so that its rate falls to its quota: its response is sent at once with the
throttle time, and its connection is not read until that has passed (KIP-13, KIP-124, KIP-219).

Differences from Apache Kafka: the rate of a client without a quota is not recorded, so that its
first quota counts from then on; ``request_percentage`` counts the time in which requests are
handled, not that of input and output; a request that is forwarded to the active controller counts
at the broker that received it, also for ``controller_mutation_rate`` (KIP-599).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kclient.broker.metadata.metadata_delta import MetadataDelta
from kclient.broker.metadata.metadata_image import MetadataImage, QuotaEntity
from kclient.broker.network.quota_rate import DEFAULT_WINDOW, QuotaRate, QuotaWindow
from kclient.broker.network.request_channel import Request
from kclient.broker.network.token_bucket import TokenBucket
from kclient.common.runtime import Clock, Lock
from kclient.protocol.api_keys import ApiKey
from kclient.protocol.messages.produce import ProduceRequest

_USER, _CLIENT_ID, _IP = "user", "client-id", "ip"
_CONNECTIONS = "connection_creation_rate"
_NS_PER_PERCENT = 1e7
"""A second of handling is 100 percent."""

_EXEMPT = frozenset({ApiKey.WRITE_TXN_MARKERS})
"""Requests of other brokers; a fetch of a follower is recognized by its handler."""

MAX_CLIENTS = 10_000
"""Users and client ids with a rate; more of them remove those that are idle."""


class _Limit(NamedTuple):
    """Quota of a client.

    Attributes:
        sharers: User and client id that share the rate; empty for any.
        value: The quota.
    """

    sharers: tuple[str, str]
    value: float


class ClientQuotaManager:
    """Rates and limits of one quota (Kafka: ClientQuotaManager). Not thread-safe.

    Attributes:
        is_enabled: Whether any client has the quota.
    """

    def __init__(
        self,
        window: QuotaWindow,
        measure: type[QuotaRate] | type[TokenBucket] = QuotaRate,
    ) -> None:
        self._window = window
        self._measure = measure
        self._values: Mapping[QuotaEntity, float] = {}
        self._limits: dict[tuple[str, str], _Limit | None] = {}
        self._rates: dict[tuple[str, str], QuotaRate | TokenBucket] = {}
        self._rates_to_prune = MAX_CLIENTS
        self.is_enabled = False

    def configure(self, values: Mapping[QuotaEntity, float]) -> None:
        """Replace the quotas, by entity; the rates continue."""
        self._values = values
        self._limits = {}
        self.is_enabled = bool(values)
        if not values:
            self._rates = {}

    def limit(self, user: str, client_id: str) -> float | None:
        """Return the quota of a client, or None."""
        found = self._limit(user, client_id)
        return None if found is None else found.value

    def record(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Add a value to the rate of a client; return for how long it is throttled.

        Args:
            user: Name of the client's principal.
            client_id: Its client id.
            value: Value; the negative of an earlier one removes that.
            now_ms: Time.

        Returns:
            Milliseconds, 0 if the client does not exceed its quota.
        """
        limit = self._limit(user, client_id)
        if limit is None:
            return 0
        rate = self._rates.get(limit.sharers)
        if rate is None:
            self._prune(now_ms)
            rate = self._rates[limit.sharers] = self._measure(self._window)
        rate.record(value, now_ms)
        return rate.throttle_ms(limit.value, now_ms)

    def _limit(self, user: str, client_id: str) -> _Limit | None:
        key = (user, client_id)
        if key not in self._limits:
            if len(self._limits) >= MAX_CLIENTS:
                self._limits = {}
            self._limits[key] = self._find(user, client_id)
        return self._limits[key]

    def _find(self, user: str, client_id: str) -> _Limit | None:
        """Return the most specific quota (Kafka: DefaultQuotaCallback.quotaLimit)."""
        both, of_user, of_client = (user, client_id), (user, ""), ("", client_id)
        candidates: tuple[tuple[QuotaEntity, tuple[str, str]], ...] = (
            (((_CLIENT_ID, client_id), (_USER, user)), both),
            (((_CLIENT_ID, None), (_USER, user)), both),
            (((_USER, user),), of_user),
            (((_CLIENT_ID, client_id), (_USER, None)), both),
            (((_CLIENT_ID, None), (_USER, None)), both),
            (((_USER, None),), of_user),
            (((_CLIENT_ID, client_id),), of_client),
            (((_CLIENT_ID, None),), of_client),
        )
        for entity, sharers in candidates:
            value = self._values.get(entity)
            if value is not None:
                return _Limit(sharers, value)
        return None

    def _prune(self, now_ms: int) -> None:
        """Remove idle rates from time to time: clients choose their ids."""
        if len(self._rates) < self._rates_to_prune:
            return
        self._rates = {key: each for key, each in self._rates.items() if not each.is_idle(now_ms)}
        self._rates_to_prune = max(MAX_CLIENTS, 2 * len(self._rates))


class ClientQuotas:
    """Quotas of the clients of a broker (Kafka: QuotaFactory.QuotaManagers).

    Attributes:
        is_enabled: Whether any client has a quota; read by each request.
    """

    def __init__(
        self,
        window: QuotaWindow,
        clock: Clock,
        lock: Lock,
        controller_window: QuotaWindow = DEFAULT_WINDOW,
    ) -> None:
        self._clock = clock
        self._window = window
        self._lock = lock  # guards: the managers
        self._produce = ClientQuotaManager(window)
        self._fetch = ClientQuotaManager(window)
        self._request = ClientQuotaManager(window)
        self._mutations = ClientQuotaManager(controller_window, TokenBucket)
        self._managers = {
            "producer_byte_rate": self._produce,
            "consumer_byte_rate": self._fetch,
            "request_percentage": self._request,
            "controller_mutation_rate": self._mutations,
        }
        self.is_enabled = False
        self._address_followers: list[Callable[[Mapping[str | None, float]], None]] = []

    def follow_addresses(self, follower: Callable[[Mapping[str | None, float]], None]) -> None:
        """Call a function with the rates of new connections by address when they change.

        That of None is the default. The thread that publishes the metadata calls it.
        """
        self._address_followers.append(follower)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a change of the metadata."""
        if not delta.changed_client_quotas:
            return
        quotas = image.client_quotas.items()
        with self._lock:
            for key, manager in self._managers.items():
                manager.configure({who: values[key] for who, values in quotas if key in values})
            self.is_enabled = any(each.is_enabled for each in self._managers.values())
        rates = {
            name: values[_CONNECTIONS]
            for ((kind, name), *_), values in quotas
            if kind == _IP and _CONNECTIONS in values
        }
        for follower in self._address_followers:
            follower(rates)

    def meter(self, request: Request) -> None:
        """Count a request, when it is responded to, against the quotas of its client."""
        if request.header.api_key not in _EXEMPT:
            request.meter(self._charge)

    def admits_mutations(self, request: Request, count: int, *, is_strict: bool) -> bool:
        """Count partitions to create or delete; return whether the client may change them now.

        A client over its quota is throttled. Only a strict request is refused, and then not counted
        (Kafka: StrictControllerMutationQuota, PermissiveControllerMutationQuota).
        """
        if not request.is_metered:
            return True
        user, client_id = _client(request)
        now_ms = int(self._clock.monotonic_ms())
        with self._lock:
            throttle_ms = self._mutations.record(user, client_id, 0, now_ms)
            is_refused = is_strict and throttle_ms > 0
            if not is_refused:
                throttle_ms = self._mutations.record(user, client_id, count, now_ms)
        if is_refused or not is_strict:
            request.mutation_throttle_ms = max(request.mutation_throttle_ms, throttle_ms)
        return not is_refused

    def max_fetch_bytes(self, request: Request) -> int | None:
        """Return the bytes of a fetch that does not exceed the quota if nothing was fetched before.

        A larger response would be throttled each time (Kafka: maxValueInQuotaWindow). It is None
        without a quota.
        """
        with self._lock:
            limit = self._fetch.limit(*_client(request))
        samples, sample_ms = self._window
        return None if limit is None else int(limit * (samples - 1) * sample_ms / 1000)

    def _charge(self, request: Request, response_bytes: int) -> int:
        """Count a request whose response is ready; return its throttle time in milliseconds.

        The bytes of a fetch that is throttled do not count: its response is empty.
        """
        user, client_id = _client(request)
        api, body = request.header.api_key, request.body
        percent = self._handling_ns(request) / _NS_PER_PERCENT
        now_ms = int(self._clock.monotonic_ms())
        bytes_ms = request_ms = 0
        with self._lock:
            if not (isinstance(body, ProduceRequest) and body.acks == 0):
                request_ms = self._request.record(user, client_id, percent, now_ms)
                request_ms = min(request_ms, self._window.sample_ms)
            if api is ApiKey.PRODUCE:
                bytes_ms = self._produce.record(user, client_id, request.size, now_ms)
            elif api is ApiKey.FETCH:
                bytes_ms = self._fetch.record(user, client_id, response_bytes, now_ms)
                if bytes_ms or request_ms:
                    self._fetch.record(user, client_id, -response_bytes, now_ms)
        return max(bytes_ms, request_ms, request.mutation_throttle_ms)

    def _handling_ns(self, request: Request) -> int:
        """Return the time in which the request was handled, without that of a delayed operation."""
        times = request.times
        ended_ns = times.handled_ns or self._clock.monotonic_ns()
        return max(ended_ns - times.dequeued_ns, 0)


def _client(request: Request) -> tuple[str, str]:
    return request.principal.name, request.header.client_id or ""
