"""The disorder of streams of any size, measured on Spark."""

from latecomer.spark.profiling.files import profile_files
from latecomer.spark.profiling.frame import profile

__all__ = ["profile", "profile_files"]
