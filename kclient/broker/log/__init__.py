"""The storage layer: Kafka's log on disk, byte for byte."""
