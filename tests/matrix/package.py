"""What is in the built packages: everything users need, and nothing else."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

BASE = ("numba", "numpy", "pandas", "pyarrow")
EXTRAS = ("spark", "cli", "report", "tuner", "testing", "all")


def check_wheel(wheel: Path) -> int:
    """The names in the wheel and its metadata; gives how many files it has."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        head = Parser().parsestr(archive.read(next(name for name in names if name.endswith("/METADATA"))).decode())
    strange = [name for name in names if not name.startswith(("latecomer/", "latecomer-"))]
    assert not strange, f"the wheel has what is not the package's: {strange}"
    for wanted in ("latecomer/py.typed", "latecomer/spark/log4j2.properties"):
        assert wanted in names, f"the wheel lacks {wanted}"
    assert any(name.endswith("LICENSE") for name in names), "the wheel lacks its licence"
    assert head["License-Expression"] == "Apache-2.0"
    required = head.get_all("Requires-Dist") or []
    always = sorted(each.split(">")[0].split("<")[0] for each in required if "extra ==" not in each)
    assert tuple(always) == BASE, f"without extras the package asks for {always}"
    assert set(EXTRAS) == set(head.get_all("Provides-Extra") or [])
    return len(names)


def check_sdist(sdist: Path) -> int:
    """No tests, no experiments; gives how many files it has."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wrong = [name for name in names if name.startswith(("tests", "lab", "artifacts"))]
    assert not wrong, f"the sdist has {wrong[:5]}"
    return len(names)


def main(folder: str) -> None:
    wheel, sdist = next(Path(folder).glob("*.whl")), next(Path(folder).glob("*.tar.gz"))
    print(f"{wheel.name}: {check_wheel(wheel)} files; {sdist.name}: {check_sdist(sdist)} files")


if __name__ == "__main__":
    main(sys.argv[1])
