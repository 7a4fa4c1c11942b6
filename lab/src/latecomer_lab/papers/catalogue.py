"""What there is to repeat: for each experiment its paper, what it shows, how long it takes, what cannot be compared."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """An experiment by its name on the command line."""

    name: str
    paper: str
    shows: str
    minutes: int
    differs: str

    @property
    def command(self) -> str:
        """As it is typed."""
        return f"latecomer reproduce {self.name}"


CATALOGUE = (
    Entry(
        "disorder",
        "Out-of-Order Data Streams",
        "the generator: late events asked for, and made",
        1,
        "The poster has no figures. Its tool takes the factor as the chance of a delay; here it is the share of events "
        "that come late.",
    ),
    Entry(
        "table1",
        "Impatience",
        "Tables I and II: disorder of the two logs",
        1,
        "The logs are not public: two made streams stand for them, tuned until their counts come near.",
    ),
    Entry(
        "figure7",
        "Impatience",
        "Figures 5 and 7 to 9: the sort and its competitors",
        30,
        "Events a second (compiled Python here, C# on a server there), so only ratios inside one run are compared; all "
        "competitors are written in the same way.",
    ),
    Entry(
        "figure10",
        "Impatience",
        "Figure 10, Table II: Q1 to Q4 with several latencies",
        20,
        "Events a second and bytes as such; ratios inside one run are compared. Memory is the bytes of the state.",
    ),
    Entry(
        "slack",
        "Slack-ScaleGate",
        "Figures 1 to 4 and 8 to 13, Table 1: the tuner and four policies",
        3,
        "Dublin's reports are made after the paper's description and time is simulated, so latencies as such say "
        "nothing. The paper tests its models on halves of one run, which only asks them to fill gaps; other days are "
        "added.",
    ),
    Entry(
        "optimistic",
        "FlameStream",
        "Figures 9 to 12: what is done twice, and latencies beside buffers",
        3,
        "Milliseconds and rates: workers are simulated, and both models have the same costs. The paper gives no "
        "numbers for its curves, so their shape is compared.",
    ),
    Entry(
        "timetravel",
        "TinTiN",
        "Tables 2 and 3, Figure 5: alerts of smart meters, 40 days late",
        2,
        "Seconds (Flink on four cores there, one core without Spark here), and the number of alerts, which are more "
        "frequent here.",
    ),
)
