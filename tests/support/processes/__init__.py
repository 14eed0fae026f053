"""Programs that tests run in processes of their own, and measurements of processes."""
