"""The report shows what the profile says, whatever the profile says."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.cells import cell_len
from rich.console import Console

from latecomer.disorder.profile import Holes, Profile, SourceProfile, waits
from latecomer.disorder.profiler import Recorded, Unmeasured, profile_recorded
from latecomer.events import Int64s
from latecomer.report.charts import Cells, coarsen, surely_late
from latecomer.report.curve import curve, verdict
from latecomer.report.html import to_html, write_html
from latecomer.report.terminal import show_profile
from latecomer.report.words import duration, duration_up, number, share, time_ticks

SECOND, HOUR, DAY = 1_000_000, 3_600_000_000, 86_400_000_000
START = 1_709_251_200_000_000  # 2024-03-01


@cache
def realistic(events: int, *, arrival: bool = False) -> Profile:
    """A day of jitter from four sources, one of which has two outages and sends what it holds when they are over."""
    rng = np.random.default_rng(7)
    names = np.array(["gateway-north", "gateway-south", None, "<b>Zürich & co</b>"], dtype=object)
    ts_us = np.sort(rng.integers(START, START + DAY, events))
    source = names[rng.integers(0, 4, events)]
    arrival_us = ts_us + (rng.lognormal(-1, 1.2, events) * SECOND).astype(np.int64)
    hour = (ts_us - START) / HOUR
    for start, stop, part in ((5.0, 7.5, 0.16), (14.0, 20.0, 0.08)):
        struck = (hour > start) & (hour < stop) & (rng.random(events) < part) & (source == "gateway-north")
        arrival_us[struck] = START + int(stop * HOUR) + rng.integers(0, 600 * SECOND, int(struck.sum()))
    order = np.argsort(arrival_us, kind="stable")
    recorded = Recorded(
        ts_us[order],
        arrival_us[order] if arrival else None,
        key=pa.array(rng.integers(0, 30, events)),
        source=pa.array(source[order]),
    )
    name = "meter readings <A&B> März.csv"
    return profile_recorded(recorded, name=name, period_us=20 * SECOND, unmeasured=Unmeasured(17))


@cache
def page_of(events: int, *, arrival: bool = False) -> str:
    """The page of a realistic stream."""
    return to_html(realistic(events, arrival=arrival))


def profile_of(ts_us: list[int] | Int64s) -> Profile:
    """The profile of event times in their order of arrival."""
    return profile_recorded(Recorded(np.array(ts_us, dtype=np.int64)), name="readings")


EXTREMES = {
    "none": profile_of([]),
    "one": profile_of([START]),
    "same": profile_of([START] * 5),
    "sorted": profile_of(np.arange(1_000) + START),
    "reversed": profile_of(np.arange(100)[::-1] * DAY + START),
    "beyond time": profile_of([2**62, -(2**60), 5]),
    "one microsecond late": profile_of([START + 1, START]),
}


def huge() -> Profile:
    """Numbers as large and names as long and as odd as they come."""
    names = [
        "x" * 200,
        "日本語のとても長い名前" * 9,
        "a\x1b[31m\nb",
        "\udcff",
        "",
        None,
        "[bold]b[/]",
        "é",
        "9th",
        "10th",
    ]
    sources = [SourceProfile(name, 10**15, 10**14, 40 * DAY, 2**62, 2**62, 2**62) for name in names]
    return replace(
        realistic(2_000),
        name="[red]" + "long name & <script>" * 20,
        events=10**16,
        late=10**16 - 1,
        keys=10**16,
        quarantined=10**16,
        runs=10**16,
        interleaved=10**16,
        inversions=10**31,
        distance=10**16,
        per_source=sources,
        sources=10**9,
        holes=Holes(2**62, 10**18, 10**18, 10**18, 2**62, 10**18, 0.5),
    )


def on_terminal(profile: Profile, width: int = 80, encoding: str = "utf-8") -> str:
    """What is printed when it is piped."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    show_profile(profile, Console(file=file, width=width))
    file.flush()
    return raw.getvalue().decode(encoding)


class Balance(HTMLParser):
    """Collects tags, and complains about one that is not closed."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def count(self, tag: str, **attrs: str) -> int:
        """How many such tags there are."""
        return sum(name == tag and attrs.items() <= found.items() for name, found in self.seen)


@pytest.mark.parametrize(
    ("us", "words"),
    [
        (0, "0 s"),
        (1, "1 us"),
        (950, "950 us"),
        (1_500, "1.5 ms"),
        (999_999, "1 s"),
        (60 * SECOND, "1 min"),
        (61 * SECOND, "61 s"),
        (92 * 60 * SECOND, "1.53 h"),
        (HOUR, "1 h"),
        (DAY, "1 d"),
        (int(35.8 * DAY), "35.8 d"),
        (500 * DAY, "500 d"),
        (840 * DAY, "2.3 y"),
        (2**62, "146,236 y"),
        (-1_500, "-1.5 ms"),
    ],
)
def test_durations_read_well(us: int, words: str) -> None:
    assert duration(us) == words


def test_every_wait_of_the_curve_has_a_round_name() -> None:
    names = [duration(wait) for wait in waits(2**62)]
    assert len(set(names)) == len(names)
    assert all("." not in name for name in names)


def test_a_share_is_never_rounded_to_none_or_all() -> None:
    assert [share(1e-12), share(1 - 1e-12)] == ["<0.0001 %", ">99.9999 %"]
    parts = [1 - 10.0**-n for n in range(1, 9)] + [10.0**-n for n in range(1, 9)] + [0.98996, 0.4999]
    assert not {share(part) for part in parts} & {"0 %", "100 %"}
    assert [share(0.9994), share(0.5), share(0.1234), share(0.0017)] == ["99.94 %", "50 %", "12.3 %", "0.17 %"]


@pytest.mark.parametrize("span_us", [1, 40, 90_000, 3 * SECOND, 5 * HOUR, 40 * DAY, 4_000 * DAY, 10**7 * DAY])
def test_ticks_of_time_are_few_and_in_their_span(span_us: int) -> None:
    for most in (3, 8):
        ticks = time_ticks(START, START + span_us, most)
        assert 1 <= len(ticks) <= most
        assert all(START <= us <= START + span_us for us, _ in ticks)


@pytest.mark.parametrize("width", [80, 132])
@pytest.mark.parametrize("profile", [huge(), *EXTREMES.values()], ids=["huge", *EXTREMES])
def test_no_line_is_wider_than_the_terminal(profile: Profile, width: int) -> None:
    text = on_terminal(profile, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text


def test_long_names_leave_room_for_figures() -> None:
    lines = on_terminal(huge()).splitlines()
    assert sum(line.startswith(("[red]", "<script>")) for line in lines) == 1
    assert sum(line.rstrip().endswith("146,236 y  146,236 y  146,236 y") for line in lines) == 8
    assert any(line.startswith("And 999,999,992 other sources.") for line in lines)


def test_plain_text_has_the_key_figures() -> None:
    profile = realistic(20_000)
    text = on_terminal(profile)
    wanted = ["März.csv", "20,000 events", "4 sources", "17 more in quarantine", "<b>Zürich & co</b>", "(no name)"]
    wanted += [number(profile.late), number(profile.inversions), number(profile.distance), number(profile.runs)]
    wanted += [
        share(profile.late_share),
        *(duration(us) for us in profile.lateness.values()),
        "█",
        "a reading every 20 s",
    ]
    assert [piece for piece in wanted if piece not in text] == []
    assert text.rstrip().endswith(verdict(profile))


def test_terminal_without_unicode_gets_plain_letters() -> None:
    text = on_terminal(realistic(2_000), encoding="ascii")
    assert "#" in text
    assert "M?rz" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none", "There are no events, so there is nothing to say about their order."),
        ("one", "A single event cannot be late: no wait is needed."),
        ("same", "No event is late: no wait is needed."),
        ("sorted", "No event is late: no wait is needed."),
        ("reversed", "A wait of 98.1 d keeps 99 % of the events; 100 % needs 99.1 d."),
        ("one microsecond late", "Only a wait of 2 us keeps 99 % of the events, and it keeps all of them."),
    ],
)
def test_verdict_holds_at_the_extremes(name: str, words: str) -> None:
    assert verdict(EXTREMES[name]) == words


def test_verdict_says_what_the_curve_says() -> None:
    profile = realistic(20_000)
    wait = next(point for point in profile.needed if point.share >= 0.99)
    whole = next(point for point in profile.needed if point.share == 1)
    longer = next(point for point in profile.completeness if point.share >= 0.99)
    assert wait.wait_us < longer.wait_us
    assert verdict(profile) == (
        f"A wait of {duration_up(wait.wait_us)} keeps {share(wait.share)} of the events; "
        f"100 % needs {duration_up(whole.wait_us)}."
    )


def test_curve_rises_and_passes_through_the_quantiles() -> None:
    profile = realistic(20_000)
    drawn = curve(profile)
    assert drawn is not None
    heights = [point.y for point in drawn.points]
    assert heights == sorted(heights)
    assert [point.share for point in drawn.points] == sorted(point.share for point in drawn.points)
    assert [point.mark for point in drawn.points if point.mark] == ["p50", "p90", "p99", "p99.9", "max"]


def test_cells_are_late_only_below_what_came_before() -> None:
    cells = Cells(np.array([0, 1, 1, 2, 2, 3]), np.array([1, 1, 0, 3, 2, 2]), np.ones(6, dtype=np.int64))
    assert surely_late(cells).tolist() == [False, False, True, False, False, True]
    joined = coarsen(cells, 2, 2)
    assert (joined.across.tolist(), joined.up.tolist(), joined.count.tolist()) == ([0, 1], [0, 1], [3, 3])


@pytest.mark.parametrize("arrival", [False, True])
def test_page_stands_alone_and_is_whole(arrival: bool) -> None:
    page = page_of(5_000, arrival=arrival)
    found = Balance(page)
    assert found.open == []
    assert set(re.findall(r"""(?:https?:)?//[^"'\s<>]*""", page)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert not re.search(r"<(script|link|img|iframe)|url\(|@import", page)
    assert found.count("svg") == 4
    assert found.count("div", role="img") == 2
    assert found.count("html", lang="en") == found.count("meta", name="viewport") == found.count("title") == 1
    ids = [attrs["id"] for _, attrs in found.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert found.count("th") == found.count("th", scope="col") + found.count("th", scope="row")


def test_page_escapes_names_and_keeps_them() -> None:
    page = page_of(5_000, arrival=False)
    assert "meter readings &lt;A&amp;B&gt; März.csv" in page
    assert "&lt;b&gt;Zürich &amp; co&lt;/b&gt;" in page
    assert "<b>" not in page
    assert "(no name)" in page


def test_page_has_the_key_figures() -> None:
    profile = realistic(5_000, arrival=False)
    text = " ".join("".join(Balance(page_of(5_000, arrival=False)).text).replace("\xa0", " ").split())
    wanted = [number(profile.late), number(profile.inversions), share(profile.late_share), verdict(profile)]
    wanted += [duration(us) for us in profile.lateness.values()]
    assert [piece for piece in wanted if piece not in text] == []


@pytest.mark.parametrize("name", ["none", "one", "reversed", "beyond time"])
def test_page_holds_at_the_extremes(name: str, tmp_path: Path) -> None:
    write_html(EXTREMES[name], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert Balance(page).open == []
    assert not re.search(r"\b(NaN|undefined|Infinity|null)\b", page)


def test_page_takes_huge_numbers_and_odd_names() -> None:
    page = to_html(huge())
    assert Balance(page).open == []
    assert "<script" not in page
    assert "\x1b" not in page
