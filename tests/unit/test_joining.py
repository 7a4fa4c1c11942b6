"""Which session a stretch joins, against a slow twin, and with very many open sessions."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from latecomer.windows.session_joining import REFUSED, Stretch, join_sessions

GAP = 5


@dataclass
class Session:
    """An open session: what is in it, and from when to when."""

    members: list[int]
    start: int
    last: int

    def near(self, start: int, last: int) -> bool:
        return self.start - GAP <= last and start <= self.last + GAP


def slow_join(stretches: Stretch, *, strict: bool) -> dict[int, frozenset[int]]:
    """The slow twin: for each stretch that is taken, all that are in its session."""
    given_up = list[Session]()
    for owner in sorted(set(stretches.owner.tolist())):
        opened = list[Session]()
        for tick in sorted(set(stretches.tick[stretches.owner == owner].tolist())):
            chosen = np.flatnonzero((stretches.owner == owner) & (stretches.tick == tick))
            chosen = chosen[np.argsort(stretches.start_us[chosen], kind="stable")]
            floor = int(stretches.floor_us[chosen[0]])
            given_up += [each for each in opened if each.last + GAP <= floor]
            opened = [each for each in opened if each.last + GAP > floor]
            for at in chosen[stretches.alone[chosen]].tolist():
                opened = put(opened, stretches, at)
            if not strict:
                for group in lying_together(stretches, chosen[~stretches.alone[chosen]].tolist()):
                    start = min(int(stretches.start_us[at]) for at in group)
                    last = max(int(stretches.last_us[at]) for at in group)
                    if any(each.near(start, last) for each in opened):
                        for at in group:
                            opened = put(opened, stretches, at)
        given_up += opened
    return {at: frozenset(session.members) for session in given_up for at in session.members}


def put(opened: list[Session], stretches: Stretch, at: int) -> list[Session]:
    """The open sessions with one stretch more."""
    start, last = int(stretches.start_us[at]), int(stretches.last_us[at])
    near = [each for each in opened if each.near(start, last)]
    members = [at, *(member for each in near for member in each.members)]
    one = Session(members, min([start, *(each.start for each in near)]), max([last, *(each.last for each in near)]))
    return [*(each for each in opened if each not in near), one]


def lying_together(stretches: Stretch, late: list[int]) -> list[list[int]]:
    groups = list[list[int]]()
    for at in late:
        reach = max((int(stretches.last_us[other]) for other in groups[-1]), default=0) if groups else 0
        if groups and stretches.start_us[at] - reach <= GAP:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 6), st.integers(0, 120), st.sampled_from([0, 0, 0, 3, 30])),
        max_size=60,
    ),
    st.booleans(),
)
def test_sessions_are_joined_as_their_twin_joins_them(rows: list[tuple[int, int, int, int]], strict: bool) -> None:
    owner, tick, start, length = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    floor = 12 * tick - 20  # one for each tick, and never lower
    stretches = Stretch(owner, tick, start, start + length, floor, (start if strict else start + GAP) > floor)
    joined, wanted = join_sessions(stretches, GAP, strict=strict), slow_join(stretches, strict=strict)
    for at, number in enumerate(joined.session.tolist()):
        if number == REFUSED:
            assert at not in wanted
        else:
            together = np.flatnonzero(joined.session == number)
            assert frozenset(together.tolist()) == wanted[at]
            assert joined.last_us[number] == stretches.last_us[together].max()


def test_one_key_with_very_many_open_sessions_is_followed_at_once() -> None:
    count = 300_000
    start = np.random.default_rng(5).permutation(count) * 1_000
    zeros = np.zeros(count, dtype=np.int64)
    stretches = Stretch(zeros, np.arange(count), start, start, zeros - 1, zeros == 0)
    begin = time.perf_counter()
    assert len(join_sessions(stretches, 10, strict=False).last_us) == count
    assert time.perf_counter() - begin < 15, "to move all open sessions for each one takes half a minute and more"
