"""What kernels look like, and when their compiled code is forgotten."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import latecomer

ROOT = Path(latecomer.__file__).parent
MOST = 6


def kernels() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function that numba compiles, with the file it is in."""
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and {"kernel", "bare_kernel"} & _decorators(node):
                yield name, node


def _decorators(function: ast.FunctionDef) -> set[str]:
    return {decorator.id for decorator in function.decorator_list if isinstance(decorator, ast.Name)}


def test_kernels_take_at_most_six_arguments() -> None:
    found = {f"{file}:{kernel.name}": kernel.args for file, kernel in kernels()}
    assert len(found) > 30
    many = {name: len([*args.posonlyargs, *args.args, *args.kwonlyargs]) for name, args in found.items()}
    assert {name: count for name, count in many.items() if count > MOST} == {}


def test_kernels_are_short() -> None:
    long = {f"{file}:{kernel.name}": (kernel.end_lineno or 0) - kernel.body[0].lineno for file, kernel in kernels()}
    assert {name: lines for name, lines in long.items() if lines > 42} == {}


@pytest.mark.parametrize("changed", ["top.py", "inner/beside.py"])
def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(tmp_path: Path, changed: str) -> None:
    package = tmp_path / "pack"
    (package / "inner").mkdir(parents=True)
    for folder in (package, package / "inner"):
        (folder / "__init__.py").touch()
    (package / "_jit.py").write_text((ROOT / "_jit.py").read_text())
    one = "from pack._jit import bare_kernel\n\n\n@bare_kernel\ndef one(number):\n    return number + {}\n"
    for name in ("top.py", "inner/beside.py"):
        (package / name).write_text(one.format(1))
    (package / "inner" / "caller.py").write_text(
        "from pack._jit import kernel\nfrom pack.inner import beside\nfrom pack import top\n"
        "above, near = top.one, beside.one\n\n\n"
        "@kernel\ndef both(number):\n    return above(number) + near(number)\n"
    )
    assert [_both(tmp_path), _both(tmp_path)] == [2, 2]
    (package / changed).write_text(one.format(1_001))
    assert _both(tmp_path) == 1_002


def _both(folder: Path) -> int:
    """What the kernel gives in a process of its own."""
    code = "from pack.inner.caller import both; print(both(0))"
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LATECOMER_JIT", "NUMBA_"))}
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**plain, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(answer.stdout)
