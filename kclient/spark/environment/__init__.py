"""What Spark's processes find where they run: Java, Python, packages, brokers; and the lag."""
