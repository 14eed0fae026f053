"""The one error of the harness."""


class HarnessError(RuntimeError):
    """Apache Kafka could not be found, started or asked; the text says what was tried."""
