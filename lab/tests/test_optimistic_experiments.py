"""The experiments of optimistic processing: the twin of the fold, the acker, both models, and everything small."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import naive_optimistic
from tests.command import run as command

from latecomer.errors import InputError
from latecomer_lab.optimistic.acker import Acker
from latecomer_lab.optimistic.barrier import Barrier, Entry, Watermarks
from latecomer_lab.optimistic.buffering_model import BufferingModel
from latecomer_lab.optimistic.cluster import Job, busiest_us
from latecomer_lab.optimistic.documents import Document, choose_documents, make_documents, read_documents
from latecomer_lab.optimistic.experiments import OptimisticExperiments, run
from latecomer_lab.optimistic.inverted_index import sequential_index
from latecomer_lab.optimistic.key_history import KeyHistory
from latecomer_lab.optimistic.model import Model
from latecomer_lab.optimistic.network import Network
from latecomer_lab.optimistic.optimistic_model import OptimisticModel
from latecomer_lab.optimistic.page import to_html
from latecomer_lab.optimistic.picture import draw, story
from latecomer_lab.optimistic.targets import largest_growth
from latecomer_lab.optimistic.trials import OPTIMISTIC, Measured, Trial, count_different

MODELS = (OptimisticModel, BufferingModel)


def job(workers: int, load: float, seed: int = 0, documents: int = 120) -> Job:
    made = make_documents(seed, documents)
    return Job(made, workers, load * 1e6 / busiest_us(made, workers, seed), seed)


def group(before: tuple[int, ...], number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A window of three."""
    whole = (*before, number)
    return whole[-2:], whole


def arrive(numbers: list[int], step: Any, initial: Any) -> dict[int, Any]:
    """Feed numbers by key, odd and even, and keep what stands."""
    histories = {key: KeyHistory(step, initial) for key in (0, 1)}
    stands: Counter[tuple[int, Any]] = Counter()
    for number in numbers:
        for position, output, change in histories[number % 2].insert(number, number):
            stands[position, output] += change
            assert stands[position, output] in (0, 1), "a tombstone cancels one output that stood"
    return {position: output for (position, output), count in stands.items() if count}


@given(st.permutations(range(1, 9)))
def test_groups_of_three_by_even_and_odd_are_the_papers_in_any_order_of_arrival(numbers: list[int]) -> None:
    expected = [(1,), (2,), (1, 3), (2, 4), (1, 3, 5), (2, 4, 6), (3, 5, 7), (4, 6, 8)]
    stands = arrive(numbers, group, ())
    assert [stands[number] for number in range(1, 9)] == expected


@given(st.permutations(range(1, 13)))
def test_a_fold_that_depends_on_order_equals_its_twin_on_sorted_input(numbers: list[int]) -> None:
    def step(state: int, number: int) -> tuple[int, int]:
        return (3 * state + number) % 7, state

    chain = [naive_optimistic.Fold(lambda state, number: (step(state, number)[0], [state]), 0)]
    items = [naive_optimistic.Item((number,), number % 2, number) for number in numbers]
    expected = {item.position[0]: item.payload for item in naive_optimistic.run_sorted(chain, items)}
    assert arrive(numbers, step, 0) == expected


def test_a_late_item_voids_as_many_outputs_as_lie_behind_it() -> None:
    history = KeyHistory(lambda total, amount: (total + amount, total + amount), 0)
    for position, amount in ((0, 100), (2, -30), (3, -20)):
        assert [change for *_, change in history.insert(position, amount)] == [1]
    assert history.insert(1, 500) == [(2, 70, -1), (3, 50, -1), (1, 600, 1), (2, 570, 1), (3, 550, 1)]


def test_the_front_waits_for_what_is_not_issued_and_not_handled() -> None:
    acker = Acker(3)
    acker.issue(1)
    assert not acker.acknowledge({1: 7})
    assert not acker.acknowledge({1: 7})  # complete, but document 0 has not come
    acker.issue(0)
    assert not acker.acknowledge({0: 5})
    assert not acker.acknowledge({0: 9})  # handled before its sender has said so
    assert acker.acknowledge({0: 5 ^ 9})
    assert acker.front == 2


def test_the_barrier_gives_documents_in_order_without_what_is_void() -> None:
    barrier = Barrier(1, 2)
    barrier.take(3, [(7, 1, 1), (8, 4, 1)], 1.0)
    barrier.take(1, [(7, 1, 1)], 2.0)
    barrier.take(3, [(7, 1, -1), (7, 2, 1)], 3.0)
    assert [(each.document, each.update) for each in barrier.release(3)] == [(1, [(7, 1)])]
    assert [(each.document, each.update) for each in barrier.release(5)] == [(3, [(7, 2), (8, 4)])]
    assert (barrier.items, barrier.tombstones) == (5, 1)


def test_links_keep_order_and_nodes_do_one_thing_after_the_other() -> None:
    network, taken = Network(2, 1), list[tuple[int, float]]()

    def take(now_us: float, node: int, packet: int) -> None:
        taken.append((packet, network.work(now_us, node, 50.0)))

    for packet in range(100):
        network.send(float(packet), 0, 1, take, packet)
    network.run()
    assert [packet for packet, _ in taken] == list(range(100))
    assert all(later - earlier >= 50.0 for (_, earlier), (_, later) in pairwise(taken))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("workers", "load"), [(1, 0.5), (2, 0.9), (3, 1.5), (7, 0.7)])
def test_updates_are_those_of_the_sequential_index(model: type[Model], workers: int, load: float) -> None:
    given_job = job(workers, load, seed=workers)
    outcome = model(given_job).run()
    assert count_different(outcome, sequential_index(given_job.documents)) == 0
    assert min(outcome.latency_us) > 0


def test_optimistic_runs_have_something_to_repair_and_buffers_never_do() -> None:
    repaired, buffered = OptimisticModel(job(7, 0.7)).run(), BufferingModel(job(7, 0.7)).run()
    assert repaired.items == repaired.valid + 2 * repaired.tombstones
    assert repaired.tombstones > 0
    assert (buffered.tombstones, buffered.ratio) == (0, 1.0)


def test_one_worker_takes_nothing_back() -> None:
    assert OptimisticModel(job(1, 0.9)).run().ratio == 1.0


def test_updates_differ_where_tombstones_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    take = Barrier.take

    def lose(self: Barrier, document: int, entries: list[Entry], at_us: float) -> None:
        take(self, document, [entry for entry in entries if entry[2] > 0], at_us)

    monkeypatch.setattr(Barrier, "take", lose)
    given_job = job(7, 0.7)
    assert count_different(OptimisticModel(given_job).run(), sequential_index(given_job.documents)) > 0


def test_updates_differ_where_the_acker_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurry(self: Acker, acks: dict[int, int]) -> bool:
        self.front = max(self.front, *acks)
        return True

    monkeypatch.setattr(Acker, "acknowledge", hurry)
    given_job = job(7, 0.7)
    assert count_different(OptimisticModel(given_job).run(), sequential_index(given_job.documents)) > 0


def test_updates_differ_where_one_watermark_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurry(self: Watermarks, source: int, mark: int) -> bool:
        moved, self.least = mark > self.least, max(mark, self.least)
        return moved

    monkeypatch.setattr(Watermarks, "advance", hurry)
    given_job = job(7, 0.7)
    assert count_different(BufferingModel(given_job).run(), sequential_index(given_job.documents)) > 0


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_run(model: type[Model]) -> None:
    one, same, other = (model(job(4, 0.6, seed)).run() for seed in (3, 3, 4))
    assert one == same
    assert one.latency_us != other.latency_us


def test_every_document_sends_watermarks_from_all_workers_to_all_twice() -> None:
    workers, documents = 4, 50
    outcome = BufferingModel(job(workers, 0.1, documents=documents)).run()
    assert outcome.messages == documents * (workers + 2 * workers * (workers - 1))


def test_texts_become_documents(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The cat, the dog")
    pq.write_table(pa.table({"text": ["a dog", None, "!"]}), tmp_path / "b.parquet")
    documents = read_documents(tmp_path)
    assert documents == [Document(2, [0, 1]), Document(4, [2, 3, 1])]
    assert sorted(choose_documents(documents, 1, 2)) == documents
    with pytest.raises(InputError, match="--texts must have at least 3 texts with words; got 2; give another folder"):
        choose_documents(documents, 1, 3)
    pq.write_table(pa.table({"words": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(InputError, match=r"--texts must have Parquet files with a column `text`; got 'c.parquet'"):
        read_documents(tmp_path)


def test_made_documents_resemble_paragraphs() -> None:
    documents = make_documents(5, 400)
    words = sum(document.words for document in documents) / 400
    items = sum(len(document.items) for document in documents) / 400
    assert 80 < words < 100
    assert 55 < items < 66


def test_growth_counts_more_workers_at_one_rate_and_seed() -> None:
    def at(workers: int, ratio: float, load: float = 0.5, where: str = "100/s", seed: int = 0) -> Measured:
        trial = Trial(OPTIMISTIC, workers, where, 100.0, load, 50.0, seed)
        return Measured(trial, ratio, 0, [], {}, 0.0, 0.0, 0.0, 0)

    shuffled = [at(1, 1.0), at(5, 1.07), at(4, 1.1), at(3, 9.0, 0.8), at(2, 1.05, 0.7)]
    shuffled += [at(9, 3.0, where="load 0.6"), at(9, 3.0, seed=1)]
    Random(1).shuffle(shuffled)
    assert largest_growth(shuffled, 0.6) == pytest.approx(0.05)
    assert largest_growth(shuffled, 1.0) == pytest.approx(7.95)


def test_the_picture_tells_of_a_late_booking() -> None:
    cells = [(cell.line, cell.time, cell.text, cell.void) for cell in story()]
    assert ("09:10 comes late: taken back", "09:20", "70", True) in cells
    assert ("what stands", "09:30", "550", False) in cells


def test_a_small_run_fills_report_page_and_picture(tmp_path: Path) -> None:
    settings = replace(OptimisticExperiments(), seeds=1, documents=60, workers=(1, 2, 5), rates=(100, 300))
    report, found = run(settings, lambda _: None)
    report.write(tmp_path / "optimistic.json")
    written = json.loads((tmp_path / "optimistic.json").read_text())
    assert list(written) == ["name", "versions", "settings", "results", "targets"]
    assert {row["figure"] for row in written["results"]} == {"9", "10", "11", "12", "ours"}
    assert all(list(each) == ["name", "value", "target", "at_least", "met"] for each in written["targets"])
    names = {target["name"]: target["value"] for target in written["targets"]}
    assert names["updates that are not those of the sequential index"] == 0
    assert "5 workers, load 1: latency / buffering, least" in names
    page = to_html(report, found)
    assert page.count("<svg") == 2 * (1 + 2 + 1 + 2)
    assert "<script" not in page
    assert draw(found).startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rates", "fast"), "error: --rates must be numbers above 0 with commas between; got 'fast'"),
        (("--rates", "9000", "--documents", "50"), "error: --rates must have a rate that 5 workers can take"),
        (("--texts", "/nowhere"), "error: --texts must name a folder; got '/nowhere'"),
        (("--picture", "/nowhere/x.svg"), "error: --picture must name a file in a folder that exists"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_one_sentence(arguments: tuple[str, ...], message: str) -> None:
    answer = command("reproduce", "optimistic", *arguments)
    assert answer.returncode == 2
    assert message in " ".join(answer.stderr.split())
    assert answer.stdout == ""
