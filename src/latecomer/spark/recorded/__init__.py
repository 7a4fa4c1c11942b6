"""A data set on disk as numbered rows in Spark."""
