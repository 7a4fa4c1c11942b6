"""The sharded operator on Spark: the only package that imports pyspark."""

from latecomer.spark.compat import check_here

check_here()
