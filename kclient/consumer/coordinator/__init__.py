"""Group membership, rebalances and commits (Kafka: AbstractCoordinator, ConsumerCoordinator)."""
