"""A disorder profile as people read it: on the terminal, and as one HTML file that needs nothing else."""

from latecomer.report.html import to_html, write_html
from latecomer.report.terminal import show_profile

__all__ = ["show_profile", "to_html", "write_html"]
