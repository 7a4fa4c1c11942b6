"""The paper's figures (TinTiN, section 7): Table 2 and Table 3 by thousands of meters, and what is said of Figure 5."""

from __future__ import annotations

from typing import NamedTuple

from latecomer.timetravel import EAGER, LAZY
from latecomer_lab.timetravel.forms import DISCARD


class PaperData(NamedTuple):
    """A column of Table 2."""

    readings: int
    late: int
    holes: int
    contexts: int


TABLE_2 = {
    10_000: PaperData(11_400_000, 90_100, 406_000, 899_000),
    20_000: PaperData(22_800_000, 179_000, 808_000, 1_790_000),
    30_000: PaperData(34_200_000, 262_000, 1_220_000, 2_660_000),
    40_000: PaperData(45_500_000, 350_000, 1_660_000, 3_580_000),
    50_000: PaperData(56_900_000, 435_000, 2_030_000, 4_410_000),
}


class PaperClasses(NamedTuple):
    """A row of Table 3; nothing is different there."""

    exact: int
    omitted: int
    duplicate: int


_OUTPUT = {  # exact results of all but discard, those of discard, duplicates of eager and of lazy
    10_000: (240, 213, 351, 0),
    20_000: (388, 350, 645, 5),
    30_000: (518, 460, 2_261, 37),
    40_000: (729, 659, 2_536, 37),
    50_000: (850, 765, 2_780, 39),
}
TABLE_3 = {
    meters: {
        EAGER: PaperClasses(exact, 0, eager),
        LAZY: PaperClasses(exact, 0, lazy),
        DISCARD: PaperClasses(discarded, exact - discarded, 0),
    }
    for meters, (exact, discarded, eager, lazy) in _OUTPUT.items()
}

WAITING_HOLDS = 1_920  # readings per meter: 40 days of hours in two windows each
FIGURE_5 = (
    ("5a", "Lower throughput than sorted and discard, far above wait, which ends at 20,000 meters; eager below lazy."),
    ("5b", "About 100 ms more than discard; wait 98 s and 191 s; a fresh replica 3 to 4 s."),
    ("5c", "Eager some hours below lazy, both far below wait's 40 days."),
    ("5d", "90 % of late readings within 2 hours, 99.8 % within 24; wait: 95 % after more than 37 days."),
    ("5e", "Two orders of magnitude fewer readings held than wait's 1,920 per meter."),
)


def nearest_size(meters: int) -> int:
    """The paper's number of meters that is nearest.

    >>> nearest_size(1_000), nearest_size(26_000)
    (10000, 30000)
    """
    return min(TABLE_2, key=lambda size: abs(size - meters))
