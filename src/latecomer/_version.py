"""The version of the package, for every process that has it, also where it was shipped without its metadata."""

__version__ = "0.1.0"
