"""The report: for the terminal, and as one HTML file that needs nothing else."""
