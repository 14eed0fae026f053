"""Broker server: configuration, wiring, the dispatch table and one handler for each API."""
