"""A missing extra gives one sentence that names it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from latecomer.extras import EXTRAS, MissingExtraError, needed_for

PAGE = """
import numpy as np
from latecomer.disorder.profiler import Recorded, profile_recorded
lc.to_html(profile_recorded(Recorded(np.arange(10))))
"""
HIDE = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"


def run_without(names: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """A Python in which some libraries cannot be imported."""
    program = HIDE.format(names=names) + code
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("library", "code", "message"),
    [
        ("pyspark", "lc.disordered", "lc.disordered must find the library pyspark; got None; run: pip install"),
        ("pyspark", "lc.session", "'latecomer[spark]'"),
        (
            "pyspark",
            "lc.generate(lc.preset('synthetic', events=1000), '/no/such/folder', engine='spark')",
            "engine='spark'",
        ),
        ("jinja2", "lc.to_html", "lc.to_html must find the library jinja2; got None; run: pip install"),
        ("altair", PAGE, "lc.to_html must find the library altair; got None; run: pip install"),
        ("pydantic", "lc.profile('a.csv', time='ts')", "a profile of files must find the library pydantic"),
        ("pydantic", "lc.generate({}, 'x')", "a configuration must find the library pydantic"),
    ],
)
def test_what_needs_an_extra_says_which(library: str, code: str, message: str) -> None:
    done = run_without([library], f"import latecomer as lc\n{code}")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("latecomer.extras.MissingExtraError: ")
    assert message in last
    assert f"pip install 'latecomer[{EXTRAS[library]}]'" in last


@pytest.mark.parametrize(
    ("library", "arguments"),
    [
        ("typer", []),
        ("rich", ["--help"]),
        ("pyspark", ["demo"]),
        ("vl_convert", ["profile", "no-such-file", "--time", "ts", "--html", "page.html"]),
    ],
)
def test_the_command_line_says_which_extra_it_needs(library: str, arguments: list[str]) -> None:
    done = run_without([library], f"sys.argv = ['latecomer', *{arguments!r}]\nfrom latecomer.cli import main\nmain()")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert said.startswith("error: ")
    assert f"pip install 'latecomer[{EXTRAS[library]}]'" in said


def test_machines_need_no_extra() -> None:
    code = "import latecomer as lc\nfrom latecomer import testing\ntesting.check_machine(lc.Reorder('20 ms'), runs=1)"
    done = run_without(sorted(EXTRAS), code)
    assert done.returncode == 0, done.stderr


def test_other_libraries_are_named_by_python_itself() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"), needed_for("this"):
        import_module("no_such_library")
    with pytest.raises(MissingExtraError), needed_for("this"):
        raise ModuleNotFoundError(name="pyspark.sql")


@pytest.mark.parametrize("module", ["latecomer.spark.control", "latecomer.spark.heartbeat", "latecomer.spark.playback"])
def test_a_source_s_own_process_starts_without_the_strategies_and_their_compiler(module: str) -> None:
    done = run_without([], f"import {module}\nprint([name for name in ('numba', 'pandas') if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr
