"""Web application with FastAPI: a handler that produces, and a task that consumes.

``POST /orders`` returns when the brokers have acknowledged the order. A task of the same event loop
reads the orders, counts them by customer, and commits after each batch. ``GET /orders`` returns the
counts. At the end the application finishes its batch, leaves the group, and sends what is queued.

Run it with ``uvicorn examples.web_orders:app``; the environment variable BOOTSTRAP_SERVERS names
the brokers, by default localhost:9092.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel

from kclient.aio import Consumer, Producer
from kclient.errors import KafkaError, WakeupError
from kclient.serialization import json_deserializer, json_serializer, string_serializer

TOPIC = "orders"


class Order(BaseModel):
    """An order of a customer."""

    customer: str
    amount: int


async def count_orders(consumer: Consumer[bytes | None, object], counts: Counter[str]) -> None:
    """Count orders until `wakeup` of the consumer."""
    consumer.subscribe(TOPIC)
    try:
        while True:
            for record in await consumer.poll():
                order = Order.model_validate(record.value)
                counts[order.customer] += order.amount
            await consumer.commit()
    except WakeupError:
        await consumer.commit()  # the batch that was just counted


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Create the clients in the event loop of the server, and close them when it stops."""
    servers = os.environ.get("BOOTSTRAP_SERVERS", "localhost:9092")
    app.state.counts = Counter()
    async with (
        Producer(
            bootstrap_servers=servers,
            key_serializer=string_serializer,
            value_serializer=json_serializer,
        ) as producer,
        Consumer(
            bootstrap_servers=servers,
            group_id="order-counter",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            value_deserializer=json_deserializer,
        ) as consumer,
        asyncio.TaskGroup() as tasks,
    ):
        app.state.producer = producer
        tasks.create_task(count_orders(consumer, app.state.counts))
        yield
        consumer.wakeup()  # after the present batch


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
async def post_order(order: Order, request: Request) -> dict[str, int]:
    """Send an order; return its partition and offset."""
    try:
        sent = await request.app.state.producer.send_and_wait(
            TOPIC, order.model_dump(), key=order.customer
        )
    except KafkaError as error:
        raise HTTPException(503, "the order was not accepted") from error
    return {"partition": sent.partition, "offset": sent.offset}


@app.get("/orders")
async def get_orders(request: Request) -> dict[str, int]:
    """Return the sums of the orders that were counted, by customer."""
    return dict(request.app.state.counts)
