"""How exactly a playback keeps time, measured as the bench does."""

from __future__ import annotations

from pathlib import Path

from latecomer_lab import pacing


def test_a_poll_by_the_real_clock_is_never_early(tmp_path: Path) -> None:
    settings = pacing.PacingBench(seconds=0.5, events_per_s=2_000, row_group=300)
    stamps_us = pacing.write_recording(tmp_path / "a.parquet", settings)
    started_ns, seen = pacing.poll_reader(str(tmp_path / "a.parquet"), settings)
    delays = pacing.delays_ms(stamps_us, settings, started_ns, seen)
    assert len(delays) == 5
    assert min(delays) >= 0
