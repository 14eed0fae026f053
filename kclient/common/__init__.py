"""What every room shares: errors, plain types, configuration, metrics and the door to the world."""
