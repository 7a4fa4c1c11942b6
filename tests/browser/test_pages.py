"""Reports in a real browser, without a network: they render without errors, fit, and answer to pointing.

`make test-browser` runs these with Debian's Chromium; they are no part of `make test`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import latecomer as lc
from latecomer.report.comparison_page import comparison_page
from latecomer.report.html import to_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_ERRORS = "<script>window.problems = []; window.onerror = (text) => { window.problems.push(String(text)); };</script>"
_PROBE = """<script>
const point = (mark) => {
  const box = mark.getBoundingClientRect();
  const where = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, view: window};
  for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"]) {
    mark.dispatchEvent(new (kind.startsWith("p") ? PointerEvent : MouseEvent)(kind, where));
  }
  const shown = document.getElementById("vg-tooltip-element");
  return shown ? shown.innerText : "";
};
setTimeout(() => {
  const pictures = [...document.querySelectorAll(".point")];
  const marks = pictures.map((each) => each.querySelector(".mark-symbol.role-mark path"));
  const found = {
    problems: window.problems,
    ready: pictures.map((each) => each.dataset.ready || "no"),
    said: marks.map((mark) => (mark ? point(mark) : "no mark")),
    wide: document.documentElement.scrollWidth - window.innerWidth,
    text: document.body.innerText.length,
  };
  const place = document.createElement("pre");
  place.id = "found";
  place.textContent = JSON.stringify(found);
  document.body.append(place);
}, 4000);
</script>"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: make test-browser installs it")


def looked_at(page: str, folder: Path, width: int) -> dict[str, Any]:
    """What the browser finds on a page of so many pixels."""
    file = folder / "page.html"
    start, _, end = page.replace("<head>", f"<head>{_ERRORS}", 1).rpartition("</body>")  # scripts may have others
    probed = f"{start}{_PROBE}</body>{end}"
    file.write_text(probed, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=15000",
        f"--window-size={width},900",
    ]
    profile = f"--user-data-dir={folder / 'browser'}"
    command = [str(CHROMIUM), *options, profile, "--dump-dom", file.as_uri()]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, dom[-2_000:]
    read: dict[str, Any] = json.loads(unescape(found.group(1)))
    return read


@pytest.fixture(scope="module")
def comparison() -> str:
    """The page of a small comparison, rehearsed."""
    meters = lc.preset("meters", meters=30, days=6)
    found = lc.compare(meters, window="6 hours", key="meter", every="1 hour", engine="python", batches=8)
    return comparison_page(found)


@pytest.mark.parametrize("width", [1_200, 500])
def test_a_comparison_draws_all_pictures_and_says_what_is_pointed_at(
    comparison: str, tmp_path: Path, width: int
) -> None:
    found = looked_at(comparison, tmp_path, width)
    assert found["problems"] == []
    assert found["ready"] == ["yes"] * 4
    for said in found["said"]:
        assert "way" in said, found
        assert "right" in said, found
    assert found["wide"] <= 0


@pytest.mark.parametrize("width", [1_200, 500])
def test_a_profile_fits_and_has_no_errors(tmp_path: Path, width: int) -> None:
    folder = lc.generate(lc.preset("meters", meters=20, days=4), tmp_path / "meters")
    measured = lc.profile(folder, time="ts", arrival="arrival", key="meter", period="1 hour")
    found = looked_at(to_html(measured), tmp_path, width)
    assert found["problems"] == []
    assert found["text"] > 1_000
    assert found["wide"] <= 0
