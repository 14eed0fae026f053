"""Storage layer: Kafka's log on disk, in Kafka's file formats."""
