"""Turning objects into the bytes of a key or a value, and back."""

from kclient.serialization.serializers import (
    Deserializer,
    Serializer,
    bytes_deserializer,
    bytes_serializer,
    float_deserializer,
    float_serializer,
    int_deserializer,
    int_serializer,
    json_deserializer,
    json_serializer,
    string_deserializer,
    string_serializer,
)

__all__ = [
    "Deserializer",
    "Serializer",
    "bytes_deserializer",
    "bytes_serializer",
    "float_deserializer",
    "float_serializer",
    "int_deserializer",
    "int_serializer",
    "json_deserializer",
    "json_serializer",
    "string_deserializer",
    "string_serializer",
]
