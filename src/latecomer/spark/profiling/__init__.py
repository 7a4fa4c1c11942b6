"""The disorder of streams of any size, measured on Spark."""

from latecomer.spark.profiling.files import profile_files
from latecomer.spark.profiling.frame import profile_frame

__all__ = ["profile_frame", "profile_files"]
