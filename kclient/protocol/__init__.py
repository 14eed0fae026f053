"""Kafka's messages and their bytes: pure functions between the two, nothing else.

A message is declared once, as a typed class in `kclient.protocol.messages`, with the versions that
carry each field; client and broker share the class. From the declaration an encoder and a decoder
are generated when a version is first used. Read on in this order:

- `fields`: how a class says what its fields look like on the wire;
- `struct` and `message`: what such classes can do;
- `decoder` and `encoder`: the functions generated from them; `codec` keeps them;
- `explain`: error texts; `memory`: what a hostile message may cost;
- `headers`: requests and responses with their headers; `registry`: all requests by API.
"""
