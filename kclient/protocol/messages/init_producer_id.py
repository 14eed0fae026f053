"""InitProducerId (22): producer id and epoch of idempotent and transactional producers."""

from kclient.protocol.api_keys import ApiKey
from kclient.protocol.fields import boolean, int16, int32, int64, string
from kclient.protocol.message import Request, Response


class InitProducerIdResponse(Response, versions="0-6", flexible="2+"):
    """The producer id and its epoch."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)


class InitProducerIdRequest(
    Request,
    api_key=ApiKey.INIT_PRODUCER_ID,
    response=InitProducerIdResponse,
    versions="0-6",
    flexible="2+",
    unstable=True,
):
    """Request for a producer id, or for the next epoch of one (KIP-360)."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")
