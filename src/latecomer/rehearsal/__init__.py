"""What the ways of a comparison would give on Spark, found without it: the strategies' own code, Spark's as a model."""

from latecomer.rehearsal.rehearse import rehearse

__all__ = ["rehearse"]
