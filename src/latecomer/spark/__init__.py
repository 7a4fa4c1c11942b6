"""The sharded operator on Spark: the only package that imports pyspark."""
