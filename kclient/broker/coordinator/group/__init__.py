"""The group coordinator: classic membership and committed offsets (Kafka: GroupCoordinator)."""
