"""Encoding and decoding of Kafka's messages, without input and output.

A message is declared once, as a typed class in `kclient.protocol.messages`, with the versions of
each field; client and broker share the class. An encoder and a decoder are generated from the
declaration when a version is first used. The modules, in reading order:

- `fields`: structs and their field specifiers;
- `message`: base classes of messages, and the cache of their encoders and decoders;
- `decoder` and `encoder`: generators of these functions;
- `explain`: error texts; `memory`: limit of the memory of a decoded message;
- `headers`: requests and responses with their headers; `registry`: request classes by API.
"""
