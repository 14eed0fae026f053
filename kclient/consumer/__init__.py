"""From fetched bytes to poll(), positions and commits."""
