"""The experiments behind the figures: benches and reproductions that print a table and write one shape of JSON."""
