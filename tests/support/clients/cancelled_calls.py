"""Cancellation of a coroutine at each of its suspensions, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class _Counted(Awaitable[T]):
    """A coroutine whose task is cancelled at a suspension of it.

    Attributes:
        suspensions: Number of suspensions so far.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], cancel_at: int | None) -> None:
        self.suspensions = 0
        self._coroutine = coroutine
        self._cancel_at = cancel_at

    def __await__(self) -> Generator[Any, Any, T]:
        sent: Any = None
        error: BaseException | None = None
        while True:
            try:
                if error is None:
                    suspended = self._coroutine.send(sent)
                else:
                    suspended = self._coroutine.throw(error)
            except StopIteration as returned:
                result: T = returned.value
                return result
            self.suspensions += 1
            if self.suspensions == self._cancel_at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            sent, error = None, None
            try:
                sent = yield suspended
            except BaseException as raised:  # noqa: BLE001 (passed on to the coroutine)
                error = raised


async def cancel_at_each_suspension(
    call: Callable[[int], Coroutine[Any, Any, T]],
    check: Callable[[int, T | asyncio.CancelledError], Awaitable[None]],
) -> int:
    """Run calls, and cancel the first at its first suspension, the second at its second, …

    Args:
        call: Returns the coroutine of a call, given its number.
        check: Called with the number and the outcome of each call.

    Returns:
        The number of calls that were cancelled; the last call returned before its suspension came.
    """
    for number in range(1, 1_000):
        counted = _Counted(call(number), number)

        async def run(counted: _Counted[T] = counted) -> T:
            return await counted

        task = asyncio.create_task(run())
        await asyncio.wait([task])
        if not task.cancelled():
            await check(number, task.result())
            return number - 1
        try:
            task.result()
        except asyncio.CancelledError as error:
            await check(number, error)
    raise AssertionError("the calls have no end")
