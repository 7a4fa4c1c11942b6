"""Disorder of any size, made on Spark."""

from latecomer.spark.generating.generate import make_on_spark
from latecomer.spark.generating.preset import preset_frame

__all__ = ["make_on_spark", "preset_frame"]
