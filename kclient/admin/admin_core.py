"""Core of the admin client: its calls in steps, one at a time (Kafka: KafkaAdminClient)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from kclient.admin.controller_metadata import ControllerMetadata
from kclient.admin.foreign_names import ADMIN_ARGUMENTS
from kclient.admin.requester import Requester
from kclient.client.client_config import (
    ADDRESSES,
    ClientConfig,
    ClientOptions,
    bootstrap_servers_key,
    max_idle_key,
    parse_bootstrap_servers,
)
from kclient.client.exponential_backoff import ExponentialBackoff
from kclient.client.metadata import Metadata
from kclient.client.network_client_builder import build_network_client
from kclient.common.config_def import ConfigDef, ConfigType
from kclient.common.config_keys import key, whole_number
from kclient.common.errors import ClosedError, ConfigError, KafkaError, KafkaTimeoutError
from kclient.common.foreign_names import refuse_keywords
from kclient.common.java_only_keys import java_only_keys
from kclient.common.log_context import LogContext
from kclient.common.runtime import Address, Runtime
from kclient.common.waiting import ConditionWait, Steps

_CONTROLLERS = "bootstrap_controllers"


class AdminConfig(ClientConfig):
    """Configuration of an admin client (Kafka: AdminClientConfig)."""

    bootstrap_servers: Sequence[Address] = bootstrap_servers_key(())
    bootstrap_controllers: Sequence[Address] = key(
        "bootstrap.controllers",
        ConfigType.LIST,
        partial(parse_bootstrap_servers, name=_CONTROLLERS),
        ADDRESSES,
        (),
        "Controllers to connect to, instead of bootstrap.servers (KIP-919). Calls that only brokers"
        " serve fail then.",
    )
    connections_max_idle_ms: int = max_idle_key(300_000)
    default_api_timeout_ms: int = whole_number(
        "default.api.timeout.ms", 60_000, "Default timeout of a call, retries included."
    )

    def validated(self, given: Mapping[str, object]) -> Self:
        """Check the values against each other."""
        if not self.bootstrap_servers and not self.bootstrap_controllers:
            raise ConfigError(
                f"bootstrap_servers: got nothing, expected {ADDRESSES}; or {_CONTROLLERS}"
            )
        if self.bootstrap_servers and self.bootstrap_controllers:
            raise ConfigError(
                f"{_CONTROLLERS}: got it with bootstrap_servers, expected one of them"
            )
        return super().validated(given)

    @property
    def addresses(self) -> Sequence[Address]:
        """Brokers or controllers to connect to first."""
        return self.bootstrap_servers or self.bootstrap_controllers


ADMIN_CONFIG = ConfigDef("AdminClient", AdminConfig, java_only_keys())


class AdminOptions(ClientOptions, total=False):
    """Keyword options of `AdminClient`, for type checkers."""

    bootstrap_controllers: str | Sequence[str]
    default_api_timeout_ms: int


P = ParamSpec("P")
T = TypeVar("T")

_CLIENT_ID = "kclient-admin"


class AdminCore:
    """Runs calls of an admin client, one at a time, in steps that a driver performs.

    Attributes:
        is_closed: Whether calls are refused.
    """

    def __init__(self, config: AdminConfig, runtime: Runtime) -> None:
        """Create the core, without a connection.

        Args:
            config: Configuration.
            runtime: Clock, sockets and conditions.
        """
        self._timeout_ms = config.default_api_timeout_ms
        self._clock = runtime.clock
        log_context = LogContext("AdminClient", {"clientId": config.client_id or _CLIENT_ID})
        self._uses_controllers = bool(config.bootstrap_controllers)
        kind = ControllerMetadata if self._uses_controllers else Metadata
        self._metadata = kind(runtime, config, log_context)
        self._client = build_network_client(
            config.with_values(bootstrap_servers=config.addresses),
            runtime,
            self._metadata,
            client_id=_CLIENT_ID,
            log_context=log_context,
        )
        self._backoff = ExponentialBackoff(
            config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.random.random
        )
        # guards: _in_call, is_closed. The call that runs has exclusive use of _client.
        self._turn = runtime.tasks.condition()
        self._in_call = False
        self.is_closed = False

    def call(
        self,
        call: Callable[Concatenate[Requester, P], Steps[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Steps[T]:
        """Check the arguments of a call; return its steps, which run once no other call runs.

        Args:
            call: Function of `topic_calls` or another module of calls.
            *args: Its arguments.
            **kwargs: Its arguments by keyword, such as its timeout.

        Raises:
            InvalidArgumentError: An argument is invalid; from a step: a broker refused it.
            InvalidTypeError: An argument has the wrong type, or there is no such argument.
            ClosedError: From the first step: the client is closed.
            KafkaTimeoutError: From a step: the timeout expired.
        """
        _refuse_unknown(call, kwargs)
        requester = Requester(
            self._client,
            self._metadata,
            self._clock,
            self._backoff,
            self._timeout_ms,
            uses_controllers=self._uses_controllers,
        )
        return self._in_turn(requester, call(requester, *args, **kwargs))

    def _in_turn(self, requester: Requester, steps: Steps[T]) -> Steps[T]:
        while not self._begin_call():
            if self._clock.monotonic_ms() >= requester.deadline_ms:
                raise KafkaTimeoutError(
                    "admin client: a call of another thread or task is still running"
                )
            try:
                yield ConditionWait(
                    self._turn, lambda: self.is_closed or not self._in_call, requester.deadline_ms
                )
            except BaseException:
                self._pass_on()
                raise
        try:
            return (yield from steps)
        except KafkaError:
            raise
        except BaseException as error:  # a cancellation, Ctrl-C, or an error of the driver
            requester.add_note(error)
            raise
        finally:
            self._end_call()

    def _pass_on(self) -> None:
        """Wake another call; the cancelled one may have been woken for its turn."""
        with self._turn:
            self._turn.notify()

    def close(self) -> None:
        """Close every connection, after the call that runs, if any; idempotent."""
        with self._turn:
            self.is_closed = True
            busy = self._in_call
            self._turn.notify_all()
        if not busy:  # otherwise the running call closes them when it ends
            self._client.close()

    def abandon(self) -> None:
        """Refuse calls; the connections belong to the parent of this process."""
        self.is_closed = True

    def _begin_call(self) -> bool:
        with self._turn:
            if self.is_closed:
                raise ClosedError("admin client: closed")
            if self._in_call:
                return False
            self._in_call = True
            return True

    def _end_call(self) -> None:
        with self._turn:
            self._in_call = False
            is_closed = self.is_closed
            self._turn.notify()
        if is_closed:
            self._client.close()


def _refuse_unknown(call: Callable[..., Any], given: Mapping[str, object]) -> None:
    """Raise for a keyword that a call does not have."""
    code = call.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    unknown = {name: value for name, value in given.items() if name not in known}
    refuse_keywords(f"AdminClient.{call.__name__}", unknown, ADMIN_ARGUMENTS)
