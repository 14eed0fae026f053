"""Messages and their bytes: pure functions between the two, nothing else."""
