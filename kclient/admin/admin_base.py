"""Base of the admin client: its life, and calls that block."""

import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar, Unpack

from kclient.admin.admin_core import ADMIN_CONFIG, AdminCall, AdminCore, AdminOptions
from kclient.common.arguments import check_timeout
from kclient.common.config_def import merged
from kclient.common.errors import ClosedError, ForkedClientError, IllegalStateError
from kclient.common.event_loop import refuse_in_event_loop
from kclient.common.interrupts import deferred_signals
from kclient.common.process_bound import ProcessBound
from kclient.common.runtime import Runtime
from kclient.common.waiting import run_steps
from kclient.network.system_runtime import system_runtime

T = TypeVar("T")


class AdminBase(ProcessBound):
    """Connections of an admin client, and its calls one at a time."""

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[AdminOptions],
    ) -> None:
        runtime = runtime if runtime is not None else system_runtime()
        self._clock, self._tasks = runtime.clock, runtime.tasks
        self._process_id = self._tasks.process_id()
        self._callers: set[int] = set()  # of the calls in progress
        settings = ADMIN_CONFIG.parse(merged(config, options))
        self._servers = ",".join(f"{host}:{port}" for host, port in settings.bootstrap_servers)
        self._core = AdminCore(settings, runtime)

    def close(self) -> None:
        """Close every connection, after the call that runs, if any; idempotent."""
        if self._is_foreign():
            self._core.abandon()
            return
        with deferred_signals():
            self._core.close()

    def __enter__(self) -> Self:
        """Return the client; the end of the block closes it.

        Raises:
            ClosedError: The client is closed.
        """
        if self._core.is_closed:
            raise ClosedError("admin client: closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<AdminClient of {self._servers}{', closed' if self._core.is_closed else ''}>"

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        # At interpreter exit modules may be gone, hence the argument `warn`.
        core: AdminCore | None = getattr(self, "_core", None)
        if core is None or core.is_closed or self._is_foreign():
            return
        warn(f"{self!r} was never closed", ResourceWarning, stacklevel=2, source=self)

    def _call(self, name: str, timeout: float | None, call: AdminCall[T]) -> T:
        timeout_ms = check_timeout(timeout, default_ms=self._core.timeout_ms)
        if self._is_foreign():
            raise ForkedClientError(
                f"admin client: created in process {self._process_id}; create a new one after fork"
            )
        refuse_in_event_loop(name, f"admin.{name}, …")
        caller = self._tasks.caller_id()
        if caller in self._callers:
            raise IllegalStateError(
                f"{name}: got called inside another call of this client, as by a log handler or a "
                "finalizer, expected another thread; it would wait for itself"
            )
        self._callers.add(caller)
        try:
            return run_steps(self._core.call(call, timeout_ms), self._clock)
        finally:
            self._callers.discard(caller)

    def _is_foreign(self) -> bool:
        """Return whether this process was forked from the one that created the client."""
        return self._tasks.process_id() != self._process_id
