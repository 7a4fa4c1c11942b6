"""Windows of time: [offset + k * advance, offset + k * advance + size), cut into slices that overlapping ones share."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from latecomer.durations import Duration, duration_us, signed_duration_us
from latecomer.errors import InputError, must
from latecomer.events import Stretches

WINDOW_COLUMNS = WINDOW_START, WINDOW_END = "window_start", "window_end"
MOST_SLICES = 10_000


@dataclass(frozen=True)
class Window:
    """Windows of `size`, one beginning every `advance` (tumbling windows: their size).

    One begins at 1970-01-01 00:00, or at `offset` after it, which may be negative: weeks that begin on Monday are
    windows of 7 days with an offset of -3 days, since 1970 began on a Thursday.
    """

    size: Duration
    advance: Duration | None = None
    offset: Duration | None = None

    def __post_init__(self) -> None:
        if self.size_us < self.advance_us:
            rule = f"be at most the size ({self.size}), or events fall between windows"
            raise InputError(must("advance", rule, self.advance, "make it shorter, or the size longer"))
        signed_duration_us(self.offset, "offset")

    def check_slices(self) -> None:
        """Refuse windows of too many slices: to be asked by what works on slices."""
        if self.slices > MOST_SLICES:
            rule = f"have at most {MOST_SLICES:,} slices, which are as long as size and advance have in common"
            advice = "make the advance longer, or a part of the size"
            raise InputError(must("windows", rule, f"{self.slices:,} ({self.size}, {self.advance})", advice))

    @property
    def size_us(self) -> int:
        """The size in microseconds."""
        return duration_us(self.size, "size")

    @property
    def advance_us(self) -> int:
        """The advance in microseconds."""
        return self.size_us if self.advance is None else duration_us(self.advance, "advance")

    @property
    def offset_us(self) -> int:
        """Where the first window after 1970 begins, in microseconds: below the advance."""
        return signed_duration_us(self.offset, "offset") % self.advance_us

    @property
    def steps(self) -> Stretches:
        """From the start of one window to the start of the next."""
        return Stretches(self.advance_us, self.offset_us)

    @property
    def slice_us(self) -> int:
        """The length of a slice: the longest that windows are made of."""
        return gcd(self.size_us, self.advance_us)

    @property
    def cut(self) -> Stretches:
        """Time cut into slices."""
        return Stretches(self.slice_us, self.offset_us)

    @property
    def slices(self) -> int:
        """How many slices a window has."""
        return self.size_us // self.slice_us

    def shown(self) -> str:
        """As text for people."""
        shown = str(self.size) if self.slices == 1 else f"{self.size}, every {self.advance}"
        return f"{shown}, offset {self.offset}" if self.offset_us else shown

    def describe(self) -> dict[str, int]:
        """What is stored with the state and compared on restart."""
        return {"size_us": self.size_us, "advance_us": self.advance_us, "offset_us": self.offset_us}

    @property
    def step(self) -> int:
        """After how many slices the next window begins."""
        return self.advance_us // self.slice_us


@dataclass(frozen=True)
class SessionWindow:
    """Windows that last as long as no gap between two events of a key is longer than `gap`."""

    gap: Duration

    def __post_init__(self) -> None:
        duration_us(self.gap, "gap")

    @property
    def gap_us(self) -> int:
        """The gap in microseconds."""
        return duration_us(self.gap, "gap")

    def shown(self) -> str:
        """As text for people."""
        return f"sessions until nothing comes for {self.gap}"

    def describe(self) -> dict[str, int]:
        """What is stored with the state and compared on restart."""
        return {"gap_us": self.gap_us}
