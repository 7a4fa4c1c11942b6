"""Figures 8 to 10 of the Slack-ScaleGate paper: reading from the structure, and a join on several nodes.

Figure 8: two writers put 20,000 tuples each into the structure, and 1 to 8 readers read all of them; in the paper a
read takes less than 0.002 ms. Figures 9 and 10: the more nodes a join has, the more rows and comparisons it gets
through. A node is a shard here; what counts is the one that takes longest.
"""

from __future__ import annotations

import time
from typing import Any

from latecomer.slack import SlackGate
from latecomer_lab.slack.speed import join_of, stream, work

READ_MS = 0.002


def figure_8(tuples: int = 20_000, most_readers: int = 8, rounds: int = 3) -> list[dict[str, Any]]:
    """Milliseconds of processor time for a read, by the number of readers; the fastest round of each counts."""
    found = []
    for readers in range(1, most_readers + 1):
        reads, seconds = min((_read(tuples, readers) for _ in range(rounds)), key=lambda each: each[1])
        found.append({"figure": "8", "readers": readers, "reads": reads, "read_ms": round(1_000 * seconds / reads, 5)})
    return found


def _read(tuples: int, readers: int) -> tuple[int, float]:
    """How many reads there are, and the seconds that they take, where two writers put in so many tuples each."""
    gate = SlackGate(["bus", "scats"], readers, slack=100)
    taken, reads = 0.0, 0
    for number in range(tuples):
        gate.insert(number, "bus")
        gate.insert(max(0, number - 50), "scats")
        if number % 1_000 == 999:
            began = time.process_time()
            reads += sum(1 for reader in range(readers) for _ in gate.drain(reader))
            taken += time.process_time() - began
    return reads, taken


def figures_9_and_10(rows: int = 20_000, batches: int = 6, seed: int = 0) -> list[dict[str, Any]]:
    """Rows and comparisons that a join gets through in a second of its slowest node, by the number of nodes."""
    batches_of, join = stream(rows, batches, 64, 50, seed), join_of(200, 64, 50)
    work(join, batches_of[:2])  # compiles
    found = []
    for nodes in (1, 2, 4, 8):
        done = [work(join, batches_of, node, nodes) for node in range(nodes)]
        seconds = max(each.seconds for each in done)
        compared = sum(each.comparisons for each in done)
        found.append(
            {
                "figure": "9 and 10",
                "nodes": nodes,
                "rows_per_second": round(rows * batches / seconds),
                "comparisons_per_second": round(compared / seconds),
            }
        )
    return found
