"""Transaction coordinator: its records, decisions, shards and markers."""
