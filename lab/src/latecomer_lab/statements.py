"""What a paper says of one of its tables or figures, and beside it what was found here."""

from __future__ import annotations

from typing import NamedTuple


class Statement(NamedTuple):
    """What is said of a figure, there and here."""

    figure: str
    paper: str
    here: str
