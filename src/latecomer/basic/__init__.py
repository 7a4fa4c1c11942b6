"""The two plainest strategies: let everything through, or hold it until a punctuation."""

from latecomer.basic.hold import Hold
from latecomer.basic.pass_through import PassThrough

__all__ = ["Hold", "PassThrough"]
