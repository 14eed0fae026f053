"""The campaign: the long parts of the verification, one after the other, with a report."""
