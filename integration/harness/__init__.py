"""Starts Apache Kafka for tests and runs its own tools, without the client under test."""
