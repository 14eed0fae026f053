"""The report: for the terminal, and as one self-contained HTML file."""
