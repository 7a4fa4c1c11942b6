"""The one shape in which every experiment reports: name, versions, settings, results, targets."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("latecomer", "pyspark", "pyarrow", "numpy", "numba", "pandas")


@dataclass(frozen=True)
class Target:
    """A figure to reach; `at_least` says on which side of it `value` must lie."""

    name: str
    value: float
    target: float
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether the figure was reached."""
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass
class Report:
    """What an experiment did and found."""

    name: str
    settings: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As it is written."""
        return {
            "name": self.name,
            "versions": versions(),
            "settings": self.settings,
            "results": self.results,
            "targets": [{**asdict(target), "met": target.met} for target in self.targets],
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")


def versions() -> dict[str, str]:
    """The versions that matter, and the machine's size."""
    found = {name: version(name) for name in _PACKAGES}
    found["python"] = platform.python_version()
    found["cores"] = str(os.cpu_count())
    return found
