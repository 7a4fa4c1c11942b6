"""`latecomer reproduce all`: every table and figure of the five papers in one report."""
