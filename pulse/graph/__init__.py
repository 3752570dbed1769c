"""A small graph representation: nodes over named values, dimensions as expressions in the signal length."""
