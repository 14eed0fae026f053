"""SASL: mechanisms, which do no input or output, and the exchange of their tokens."""
