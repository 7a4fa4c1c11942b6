"""Right answers from late data, on Spark."""
