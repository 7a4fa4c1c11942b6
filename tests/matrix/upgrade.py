"""A query that goes on from one version of Spark to the next, against the same query with the newest alone.

Each version takes some files of the stream and stops. Environments are made by `scripts/setup`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.stream import STRATEGIES
from tests.faults.test_kill import ROOT, lanes
from tests.spark.streams import make_events, write_in_parts

ENVIRONMENTS = (".venv-spark-4.0", ".venv-spark-4.1", ".venv-spark-4.2", ".venv")
EVENTS, FILES = 12_000, 8


def run(environment: str, folder: Path, out: str, strategies: tuple[str, ...]) -> None:
    """Let one version of Spark take what is there."""
    python = ROOT / environment / "bin" / "python"
    command = [str(python), "-m", "tests.faults.stream", str(folder), out, "max", "1", *strategies]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if not done.stdout.endswith("done\n"):
        raise SystemExit(f"{environment}: a stream failed\n{done.stderr[-4_000:]}")


def upgrade(folder: Path, strategies: tuple[str, ...]) -> None:
    """Run the queries from version to version, and with the newest alone."""
    events = make_events(EVENTS, seed=21)
    part = EVENTS // len(ENVIRONMENTS)
    files = FILES // len(ENVIRONMENTS)
    for number, environment in enumerate(ENVIRONMENTS):
        write_in_parts(events.slice(number * part, part), folder / "in", files, first=number * files)
        run(environment, folder, "upgraded", strategies)
    run(ENVIRONMENTS[-1], folder, "whole", strategies)


def compare(folder: Path, strategy: str) -> int:
    """How many rows both ways gave; stops where they differ."""
    whole, found = lanes(folder, "whole", strategy), lanes(folder, "upgraded", strategy)
    for lane in whole:
        if not whole[lane].equals(found[lane]):
            raise SystemExit(f"{strategy}: the rows of {lane} differ: {len(whole[lane])} and {len(found[lane])}")
    return sum(map(len, whole.values()))


def main(strategies: tuple[str, ...]) -> None:
    """Try every strategy, or those named."""
    with tempfile.TemporaryDirectory(prefix="latecomer-upgrade-") as name:
        folder, asked = Path(name), strategies or STRATEGIES
        upgrade(folder, asked)
        for strategy in asked:
            rows = compare(folder, strategy)
            print(f"{strategy}: {rows:,} rows alike after 4.0, 4.1, 4.2 and the newest Spark", flush=True)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
