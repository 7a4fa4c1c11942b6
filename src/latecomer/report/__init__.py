"""A disorder profile as people read it: on the terminal, and as one HTML file that needs nothing else."""
