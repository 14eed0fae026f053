"""Names of other asyncio clients."""

import asyncio

import pytest

from kclient import aio


@pytest.mark.parametrize(
    ("client", "name", "hint"),
    [
        ("Producer", "start", "it starts with its first call; use async with"),
        ("Producer", "send_batch", r"use await send_many\(topic, values\)"),
        ("Producer", "produce", r"use await send\(topic, value, key\)"),
        ("Producer", "beginTransaction", r"use await begin_transaction\(\)"),
        ("Consumer", "getone", r"use await anext\(consumer\)"),
        ("Consumer", "getmany", r"use await poll\(timeout, max_records\)"),
        ("Consumer", "stop", r"use await close\(\)"),
        ("Consumer", "highwater", r"use end_offsets\(\[partition\]\)"),
    ],
)
def test_names_of_other_clients_lead_to_their_replacements(
    client: str, name: str, hint: str
) -> None:
    async def test() -> None:
        async with getattr(aio, client)(bootstrap_servers="127.0.0.1:1") as made:
            with pytest.raises(AttributeError, match=f"no attribute '{name}'; {hint}"):
                getattr(made, name)
            assert not hasattr(made, name)

    asyncio.run(test())
