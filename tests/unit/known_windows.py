"""Known cases of windows, from other projects' own tests: Liebre, Scotty, Flink and Spark.

A case is a script: `19*2` is an event at 19 with the value 2 (`19`: 1), `@22` a watermark, `;` the end of a batch where
there is none, `10=3` a window from 10 on given after it with the sum 3, `1..25=4` a session. An event `12b`
has another key, `12!` is too late. What stands before `@` or `;` is a micro-batch and a tick. One unit of a project's
time is a microsecond.

A watermark is an event of the key CLOCK, so far ahead that the punctuation, a latency behind it, is where the watermark
is. Where events are judged by themselves, not by their window (a sort, or lateness="event"), a case may have another
script: there `@1985<1980` is a watermark that stays before the event at 1980 that comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Any, NamedTuple

from latecomer.windows import SessionWindow, Window

CLOCK = -1
LONG = 3_600_000_000  # a latency above all times of the cases: only watermarks move the punctuation

Row = tuple[int, int, int, int]  # start, end, key, sum


class Event(NamedTuple):
    """An event of a script."""

    ts: int
    value: int
    key: int
    late: bool


class Step(NamedTuple):
    """Events, the watermark after them, and the windows given then; the end is 0 where the size tells it."""

    events: list[Event]
    watermark: int | None
    given: list[Row]


@dataclass(frozen=True)
class Case:
    """A script and what it is run with.

    past: the punctuation is so far behind a watermark. lateness: a second tier waits so much longer than the latency.
    only: the start of the one window that the project looks at. by_event: the script where events are judged.
    """

    name: str
    window: Window | SessionWindow
    script: str
    past: int = 0
    latency: int = LONG
    lateness: int = 0
    only: int | None = None
    by_event: str | None = None

    @property
    def strict(self) -> Case:
        """The case where events are judged by themselves."""
        return replace(self, script=self.by_event or self.script)

    @property
    def latencies(self) -> tuple[str, ...]:
        """A latency for each tier."""
        return tuple(f"{latency} us" for latency in sorted({self.latency, self.latency + self.lateness}))

    @property
    def steps(self) -> list[Step]:
        """The script, read."""
        steps: list[Step] = []
        events: list[Event] = []
        for word in self.script.split():
            key, plain = int("b" in word), word.replace("b", "").replace("!", "")
            if "=" in word:
                place, value = plain.split("=")
                start, _, end = place.partition("..")
                steps[-1].given.append((int(start), int(end or 0), key, int(value)))
            elif word[0] in "@;":
                watermark, _, before = plain[1:].partition("<")
                punctuation = int(before) - 1 if before else int(watermark or 0) - self.past
                steps.append(Step(events, punctuation if watermark else None, []))
                events = []
            else:
                ts, _, value = plain.partition("*")
                events.append(Event(int(ts), int(value or 1), key, "!" in word))
        return steps


def hopping(size: int, advance: int) -> Window:
    return Window(f"{size} us", f"{advance} us")


def tumbling(size: int) -> Window:
    return hopping(size, size)


def session(gap: int) -> SessionWindow:
    return SessionWindow(f"{gap} us")


def liebre(text: str) -> Case:
    size, advance, ts, *starts = text.split()
    script = f"{ts} @{int(ts) + int(size)} {' '.join(f'{start}=1' for start in starts)}"
    return Case(f"liebre {text.strip()}", hopping(int(size), int(advance)), script)


def scotty(name: str, window: Window | SessionWindow, script: str, **settings: Any) -> Case:
    """In Scotty a window [.., 22) is complete at the watermark 22."""
    return Case(f"scotty {name}", window, script, past=1, **settings)


def band(name: str, start: int, size: int, script: str) -> Case:
    """Scotty's single window at any start: one of our hopping windows."""
    return scotty(f"band {name}", hopping(size, gcd(start, size)), script, only=start)


def flink(name: str, window: Window | SessionWindow, script: str, **settings: Any) -> Case:
    return Case(f"flink {name}", window, script, **settings)


def spark(name: str, script: str) -> Case:
    """Windows of 5, delay 10. In Spark a window is complete at its end, not just before: one more of latency."""
    return Case(f"spark {name}", tumbling(5), script, latency=11)


LIEBRE = """1 1 15 15; 10 10 12345 12340; 1234 1234 0 0; 2 1 20 19 20; 2 2 50 50; 3 1 60 58 59 60; 3 2 100 98 100
; 3 3 1111 1110; 10 2 1009 1000 1002 1004 1006 1008; 10 5 1009 1000 1005; 10 8 117 112; 10 9 90 81 90; 10 8 89 80 88
; 10 9 1234 1233; 10 8 17 8 16; 10 9 18 9 18; 10 8 31 24; 10 9 1119991 1119987"""  # size, advance, time, starts

# Scotty: its empty windows are left out, windows that begin before 0 are added (it has none), and where its test only
# says that some windows are among the results, the others are added.
IN_ORDER, LATER = "1 19*2 29*3 39*4 49*5", "29*3 39*4 49*5"
FROM_ZERO, DISORDER = "0 0*2 20*3 30*4 40*5", "1 30 20 23 25 45"
SLIDES = "1 9 10 11 12 13 14 15 19 21*2 22 23 24 29*3 36*4"
SLICES = "1 10 11 12 13 14 15 19*3 29*4 36*5"
TEN = f"{IN_ORDER} @22 0=1 10=2 @55 20=3 30=4 40=5"
TWENTY = f"{IN_ORDER} @22 0=3 @55 20=7"
SLIDING = f"{IN_ORDER} @22 -5=1 0=1 10=2 @55 15=2 20=3 25=3 30=4 35=4 40=5 45=5"

WINDOWS = [
    *(liebre(text) for text in LIEBRE.split(";")),
    scotty("tumbling inOrderTest", tumbling(10), TEN),
    scotty("tumbling inOrderTest2", tumbling(10), f"{FROM_ZERO} @22 0=3 @55 20=3 30=4 40=5"),
    scotty("tumbling inOrderTwoWindowsTest", tumbling(10), TEN),
    scotty("tumbling inOrderTwoWindowsTest", tumbling(20), TWENTY),
    scotty("tumbling inOrderTwoWindowsDynamicTest", tumbling(10), TEN),
    scotty("tumbling inOrderTwoWindowsDynamicTest", tumbling(20), TWENTY),
    # A window added to a running query is a query of its own with us, which begins with the events after it.
    scotty("tumbling inOrderTwoWindowsDynamicTest2", tumbling(20), f"1 19*2 @22 0=3 {LATER} @55 20=7"),
    scotty("tumbling inOrderTwoWindowsDynamicTest2", tumbling(10), f"{LATER} @55 20=3 30=4 40=5"),
    scotty("tumbling outOfOrderTest", tumbling(10), f"{DISORDER} @22 0=1 @55 20=3 30=1 40=1"),
    scotty("sliding inOrderTest", hopping(10, 5), SLIDING),
    scotty("sliding inOrderTest2", hopping(10, 5), f"{FROM_ZERO} @22 -5=3 0=3 @55 15=3 20=3 25=4 30=4 35=5 40=5"),
    scotty("sliding inOrderTwoWindowsTest", hopping(10, 5), SLIDING),
    scotty("sliding inOrderTwoWindowsTest", tumbling(20), TWENTY),
    scotty("sliding inOrderTwoWindowsDynamicTest", hopping(10, 5), SLIDING),
    scotty("sliding inOrderTwoWindowsDynamicTest", tumbling(20), TWENTY),
    scotty("sliding inOrderTwoWindowsDynamicTest2", tumbling(20), f"1 19*2 @22 0=3 {LATER} @55 20=7"),
    scotty("sliding inOrderTwoWindowsDynamicTest2", hopping(10, 5), f"{LATER} @55 20=3 25=3 30=4 35=4 40=5 45=5"),
    scotty(
        "sliding slideTest",
        hopping(10, 3),
        f"{SLIDES} @22 -6=1 -3=1 0=2 3=4 6=7 9=7 12=7 @55 15=7 18=6 21=8 24=4 27=7 30=4 33=4 36=4",
    ),
    scotty("sliding outOfOrderTest", hopping(10, 5), f"{DISORDER} @22 -5=1 0=1 @55 15=2 20=3 25=2 30=1 40=1 45=1"),
    scotty(
        "sliding tupleOutsideAllowedLatenessTest",
        hopping(10, 5),
        "2600 @3000 2595=1 2600=1 3700 1980! ;",
        lateness=1000,
    ),
    # No watermark has come yet, but the event is more than 1000 behind the largest time: that is our latency.
    scotty(
        "sliding tupleOutsideAllowedLatenessTest2", hopping(10, 5), "2600 ; 1500! @3000 2595=1 2600=1", latency=1000
    ),
    scotty(
        "sliding slicingStartTest",
        hopping(10, 4),
        f"{SLICES} @22 -8=1 -4=1 0=1 4=4 8=6 12=7 @55 16=3 20=4 24=4 28=9 32=5 36=5",
    ),
    scotty("session outOfOrderCombinedSessionTumblingMegeSession", tumbling(40), "7 22 51 15 37 @70 0=4"),
    band("inOrderTest", 1, 10, f"{IN_ORDER} @55 1=1"),
    band("inOrderTest2", 0, 10, f"{FROM_ZERO} @22 0=3 @55"),
    band("inOrderTest3", 18, 10, f"{FROM_ZERO} @22 @55 18=3"),
    band("inOrderTwoWindowsTest", 10, 10, f"{IN_ORDER} @22 10=2 @55"),
    band("inOrderTwoWindowsTest", 20, 10, f"{IN_ORDER} @22 @55 20=3"),
    band("inOrderTwoWindowsTest2", 14, 11, f"{IN_ORDER} @26 14=2 @55"),
    band("inOrderTwoWindowsTest2", 23, 10, f"{IN_ORDER} @26 @55 23=3"),
    band("inOrderTwoWindowsDynamicTest", 10, 10, f"{IN_ORDER} @22 10=2 @55"),
    band("inOrderTwoWindowsDynamicTest", 20, 10, f"{LATER} @22 @55 20=3"),
    band("inOrderTwoWindowsDynamicTest2", 10, 10, f"1 19*2 @22 10=2 {LATER} @55"),
    band("inOrderTwoWindowsDynamicTest2", 20, 21, f"{LATER} @55 20=7"),
    band("outOfOrderTest", 10, 20, "1 29 20 23 25 45 @22 @55 10=4"),
    scotty(
        "demo simpleOutOfOrderTest",
        tumbling(10),
        "2000 2600 2605 2800 2400 3700 @3000 2000=1 2400=1 2600=2 2800=1 3800*2 4000*3 @3900 3700=1 3800=2",
    ),
    # Scotty sends a window again at once, our second tier when it has waited 1000 longer: the watermark 4100 is added.
    scotty(
        "demo tupleInAllowedLatenessTest",
        tumbling(10),
        "2600 2800 @3000 2600=1 2800=1 2605 3010 @3100 3010=1 @4100 2600=2",
        lateness=1000,
    ),
    # After the late event Flink's purging trigger gives its 1 alone, our second tier the whole window.
    flink(
        "testLateness",
        tumbling(2000),
        "500 @1500 1300 @2300 0=2 1997 @6000 0=3 1998! @7000",
        lateness=500,
        by_event="500 @1500<1300 1300 @2300 0=2 1997 @6000 0=3 1998! @7000",
    ),
    flink(
        "testDropDueToLatenessTumbling",
        tumbling(2000),
        "1000 @1985 1980 @1999 0=2 1998! 2001 @2999 @3999 2000=1",
        by_event="1000 @1985<1980 1980 @1999 0=2 1998! 2001 @2999 @3999 2000=1",
    ),
    # Both events at 2400 are too late for the window 0, which has been given, and not for 1000 and 2000.
    flink(
        "testDropDueToLatenessSliding",
        hopping(3000, 1000),
        "1000 @1999 -1000=1 2000 @3000 0=2 3001b 2400 2400 3001b 3900 "
        "@6000 1000=5 1000b=2 2000=4 2000b=2 3000=1 3000b=2 3001b! @25000",
        by_event="1000 @1999 -1000=1 2000 @3000 0=2 3001b 2400! 2400! 3001b 3900 "
        "@6000 1000=3 1000b=2 2000=2 2000b=2 3000=1 3000b=2 3001b! @25000",
    ),
    spark("event time and watermark metrics", "15 ; 10 12 14 ; 25 ; 10=3"),
    spark("append mode", "10 11 12 13 14 15 ; 25 ; 10=5 10! ;"),
    # Without batches for no data Spark gives a window one batch later than we do.
    spark("Trigger.Once", "15 ; 10 12 14 ; 25 ; 10=3 50 ; 15=1 25=1 50 ;"),
    spark("recovery", "10 11 12 13 14 15 ; 25 ; 10=5 10! 27 30 ; 15=1 17! ; 40 ; 25=2"),
]

FLINK = "1000 @1999 2000 @4998 4500 8500 @7400 7000 @11501 1000..11500=5 11600 @14600 11600..14600=1"
STRICT = FLINK.replace("@4998", "@4998<4500").replace("@7400", "@7400<7000")
SESSIONS = [
    scotty("session inOrderTest", session(10), "1 19*2 23*3 31*4 49*5 @22 1..11=1 @55 19..41=9 @80 49..59=5"),
    scotty(
        "session inOrderTestClean",
        session(10_000),
        "1000 19000*2 23000*3 31000*4 49000*5 @22000 1000..11000=1 @55000 19000..41000=9 @80000 49000..59000=5",
    ),
    scotty("session inOrderTest2", session(10), "0 0*2 20*3 31*4 42*5 @22 0..10=3 @55 20..30=3 31..41=4 42..52=5"),
    scotty("session outOfOrderTestSimpleInsert", session(10), "1 9 15 30 12 @50 1..25=4 30..40=1"),
    scotty("session outOfOrderTestRightInsert", session(10), "1 9 10 30 12 @50 1..22=4 30..40=1"),
    scotty("session outOfOrderTestLeftInsert", session(10), "1 9 10 30 27 @22 1..20=3 @50 27..40=2"),
    # At the watermark 22 Scotty does not give the session that ends at 22, so it is 21 here.
    scotty("session outOfOrderTestSplitSlice", session(10), "1 30 12 @21 1..11=1 @50 12..22=1 30..40=1"),
    scotty("session outOfOrderTestMergeSlice", session(10), "7 30 51 15 21 @70 7..40=4 51..61=1"),
    scotty(
        "session outOfOrderCombinedSessionTumblingMegeSession",
        session(10),
        "7 22 51 15 37 @70 7..32=3 37..47=1 51..61=1",
    ),
    scotty(
        "session outOfOrderCombinedSessionMultiSession",
        session(5),
        "20 40 50 57 33 31 @70 20..25=1 31..38=2 40..45=1 50..55=1 57..62=1",
    ),
    scotty("session outOfOrderCombinedSessionMultiSession", session(10), "20 40 50 57 33 31 @70 20..30=1 31..67=5"),
    scotty(
        "session tupleOutsideAllowedLatenessTest",
        session(10),
        "2600 2700 @3000 2600..2610=1 2700..2710=1 3700 1989! ;",
        lateness=1000,
        by_event="2600 2700 @3000 2600..2610=1 2700..2710=1 3700 1999! ;",
    ),
    scotty(
        "session tupleInsideAllowedLatenessTest",
        session(10),
        "2600 @3000 2600..2610=1 3700 2500 @4000 2500..2510=1 3700..3710=1",
        lateness=1000,
    ),
    scotty(
        "session tupleOutsideAllowedLatenessTest2",
        session(10),
        "2600 2700 ; 1500! @3000 2600..2610=1 2700..2710=1",
        latency=1000,
    ),
    scotty(
        "demo tupleInAllowedLatenessTestAddSession",
        session(10),
        "2600 2800 @3000 2600..2610=1 2800..2810=1 2500 3010 @3100 3010..3020=1 @4100 2500..2510=1",
        lateness=1000,
    ),
    *(
        # The event at 14500 comes behind the watermark 14600 and begins a session, which is open until 17500.
        flink(
            f"testDropDueToLatenessSession{name}",
            session(3000),
            f"{FLINK} {more} 14500 @20000 14500..17500=1 @100000",
            by_event=f"{STRICT} {more} 14500! @20000 @100000",
        )
        for name, more in {"ZeroLatenessPurgingTrigger": "10000! 10100!", "ZeroLateness": "10000!"}.items()
    ),
    *(
        # Flink gives it again at once and at its end, or what is new of it (1 and 1); our second tier gives it once.
        flink(
            f"testDropDueToLatenessSession{name}",
            session(3000),
            f"{FLINK} 10000 ; 14500 @20000 14500..17500=1 @100000 1000..17500=8",
            lateness=10_000,
            by_event=f"{STRICT} 10000 ; 14500 @20000 @100000 1000..17500=8",
        )
        for name in ("WithHugeLatenessPurgingTrigger", "WithHugeLateness")
    ),
]
