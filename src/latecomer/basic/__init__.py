"""The plainest strategy: let everything through."""

from latecomer.basic.pass_through import PassThrough

__all__ = ["PassThrough"]
