"""Changes of settings of topics, brokers, loggers, groups and client metrics (KIP-226, KIP-339).

- IncrementalAlterConfigs, versions 0-1.
- AlterConfigs, versions 0-2.

The response is sent when this broker has applied the change, or 1 s after the commit.
Differences from Apache Kafka: an unknown operation is refused with INVALID_REQUEST. Settings of
groups and client metrics are stored without effect. Loggers are those of Python.
"""

from collections.abc import Sequence
from typing import TypeVar

from kclient.broker.controller.configuration_control import DELETE, SET
from kclient.broker.metadata.metadata_image import ConfigResource, MetadataImage
from kclient.broker.network.request_channel import Request
from kclient.broker.server.config_admin_manager import (
    LOGGER_RESOURCE,
    Change,
    Wanted,
    refusals,
)
from kclient.broker.server.runtime_loggers import change_level
from kclient.broker.server.served_api import BrokerServices, ServedApi
from kclient.common.broker_errors import NONE, code_of
from kclient.common.errors import KafkaError
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

_MANY = 10
"""Number of resources above which a request is handled as a long one."""

Result = AlterConfigsResourceResponse | IncrementalAlterConfigsResourceResponse
ResultT = TypeVar("ResultT", AlterConfigsResourceResponse, IncrementalAlterConfigsResourceResponse)


def _alter_incrementally(
    services: BrokerServices, request: Request, body: IncrementalAlterConfigsRequest
) -> None:
    """Change single settings; each resource succeeds or fails alone."""
    wanted = [
        (
            (each.resource_type, each.resource_name),
            [Change(config.name, config.config_operation, config.value) for config in each.configs],
        )
        for each in body.resources
    ]
    refused = refusals(services, request, wanted, is_complete=False)
    accepted = []
    for each, error in zip(body.resources, refused, strict=True):
        if error is not None:
            continue
        if each.resource_type != LOGGER_RESOURCE:
            accepted.append(each)
        elif not body.validate_only:
            for config in each.configs:
                change_level(config.name, config.config_operation, config.value)
    forwarded = IncrementalAlterConfigsRequest(resources=accepted, validate_only=body.validate_only)

    def respond(outcome: IncrementalAlterConfigsResponse | KafkaError | None) -> None:
        results = _results(IncrementalAlterConfigsResourceResponse, wanted, refused, outcome)
        request.respond(IncrementalAlterConfigsResponse(responses=results))

    if not accepted:
        respond(None)
        return
    services.controller.change(
        forwarded,
        respond,
        lambda response, image: (
            body.validate_only or _are_applied(image, wanted, response.responses)
        ),
    )


def _alter(services: BrokerServices, request: Request, body: AlterConfigsRequest) -> None:
    """Replace all settings of resources; each succeeds or fails alone."""
    wanted = [
        (
            (each.resource_type, each.resource_name),
            [Change(config.name, SET, config.value) for config in each.configs],
        )
        for each in body.resources
    ]
    refused = refusals(services, request, wanted, is_complete=True)
    accepted = [each for each, error in zip(body.resources, refused, strict=True) if error is None]
    forwarded = AlterConfigsRequest(resources=accepted, validate_only=body.validate_only)

    def respond(outcome: AlterConfigsResponse | KafkaError | None) -> None:
        results = _results(AlterConfigsResourceResponse, wanted, refused, outcome)
        request.respond(AlterConfigsResponse(responses=results))

    if not accepted:
        respond(None)
        return
    services.controller.change(
        forwarded,
        respond,
        lambda response, image: (
            body.validate_only or _are_applied(image, wanted, response.responses)
        ),
    )


def _results(
    kind: type[ResultT],
    wanted: Wanted,
    refused: Sequence[KafkaError | None],
    outcome: IncrementalAlterConfigsResponse | AlterConfigsResponse | KafkaError | None,
) -> list[ResultT]:
    """Return the results in the order of the request."""
    decided: dict[ConfigResource, Result] = {}
    if outcome is not None and not isinstance(outcome, KafkaError):
        decided = {(each.resource_type, each.resource_name): each for each in outcome.responses}
    results = []
    for (resource, _), refusal in zip(wanted, refused, strict=True):
        error = outcome if refusal is None and isinstance(outcome, KafkaError) else refusal
        code = NONE if error is None else code_of(error)
        message = None if error is None else str(error)
        if error is None and resource in decided:
            code, message = decided[resource].error_code, decided[resource].error_message
        results.append(
            kind(
                error_code=code,
                error_message=message,
                resource_type=resource[0],
                resource_name=resource[1],
            )
        )
    return results


def _are_applied(image: MetadataImage, wanted: Wanted, results: Sequence[Result]) -> bool:
    """Return whether an image has all new values; lists that grew or shrank are not compared."""
    made = {(each.resource_type, each.resource_name) for each in results if each.error_code == NONE}
    return all(
        image.config(*resource).get(change.name)
        == (change.value if change.operation == SET else None)
        for resource, changes in wanted
        if resource in made
        for change in changes
        if change.operation in (SET, DELETE)
    )


def failed_incremental_alteration(
    body: IncrementalAlterConfigsRequest, code: int
) -> IncrementalAlterConfigsResponse:
    """Return the response that refuses a whole request."""
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResourceResponse(
                error_code=code,
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )


def failed_alteration(body: AlterConfigsRequest, code: int) -> AlterConfigsResponse:
    """Return the response that refuses a whole request."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
            for each in body.resources
        ]
    )


def _is_long(
    _services: BrokerServices,
    _request: Request,
    body: IncrementalAlterConfigsRequest | AlterConfigsRequest,
) -> bool:
    return len(body.resources) > _MANY


APIS = (
    ServedApi(
        IncrementalAlterConfigsRequest,
        _alter_incrementally,
        failed_incremental_alteration,
        is_long=_is_long,
    ),
    ServedApi(AlterConfigsRequest, _alter, failed_alteration, is_long=_is_long),
)
