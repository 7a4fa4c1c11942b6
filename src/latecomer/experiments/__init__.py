"""The experiments behind the figures: benchmarks that print a table and write one shape of JSON."""
