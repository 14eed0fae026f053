"""The messages of the protocol: a module for each API, holding its request and its response."""
