"""The README's picture."""

from pathlib import Path

from latecomer_lab.beside_picture import draw


def test_each_way_says_what_is_gone_or_set_aside(tmp_path: Path) -> None:
    ends = ("in the answers", "set aside", "gone")
    rows = {"Spark": dict(zip(ends, (90, 0, 10), strict=True)), "ours": dict(zip(ends, (93, 7, 0), strict=True))}
    draw(rows, tmp_path / "beside.svg")
    drawn = (tmp_path / "beside.svg").read_text(encoding="utf-8")
    assert "10 gone" in drawn
    assert "7 set aside" in drawn
