"""Runtime of coordinators: shards, their log, timers and pending writes."""
