"""The configuration of the generator: the poster's field names and friendlier ones, from JSON or TOML.

Delays without a unit are milliseconds, as in the poster's example (0 to 2000). Relative paths are relative to the
configuration file.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from latecomer.disorder import delays
from latecomer.durations import duration_us
from latecomer.errors import InputError, must

Number = int | float


def _known_as(*names: str) -> Any:
    return Field(validation_alias=AliasChoices(*names))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)


class TimeConfig(_Strict):
    """Which field is the event time, by name or by place from 0, and its unit."""

    field: Annotated[int | str, _known_as("field", "timeIndex")]
    unit: Annotated[Literal["ps", "ns", "us", "ms", "s", "iso"], _known_as("unit", "sourceTimeUnit")] = "us"


class SourceConfig(_Strict):
    """Where the events come from and how they are read."""

    path: Annotated[str, _known_as("path", "file")]
    time: TimeConfig
    format: Literal["csv", "tsv", "json", "parquet"] | None = None
    separator: str | None = None
    header: bool | None = None
    device: str | None = None
    bad_rows: Annotated[Literal["error", "quarantine"], _known_as("bad_rows", "badRows")] = "error"


_DELAYS: dict[str, type[delays.Delay]] = {
    "uniform": delays.Uniform,
    "half-normal": delays.HalfNormal,
    "exponential": delays.Exponential,
    "zipf": delays.Zipf,
    "pareto": delays.Pareto,
    "constant": delays.Constant,
    "drift": delays.Drift,
    "empirical": delays.Empirical,
    "batched": delays.Batched,
    "outage": delays.Outage,
}
RESERVED = ("report.json", "quarantine.parquet")  # what stands beside the experiments


def _known_distribution(name: str) -> str:
    if name not in _DELAYS:
        raise ValueError(f"be one of {', '.join(_DELAYS)}")
    return name


def _folder_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) or name in RESERVED:
        raise ValueError(f"be letters, digits, '.', '-' and '_', and not {' or '.join(RESERVED)}")
    return name


class ExperimentConfig(_Strict):
    """One stream to make: how many events come late, how late, by which distribution."""

    factor: Annotated[
        Number, Field(ge=0, le=100, validation_alias=AliasChoices("factor", "targetOutOfOrderFactor", "late_percent"))
    ]
    min_delay: Annotated[Number | str, _known_as("min_delay", "minDelay")] = 0
    max_delay: Annotated[Number | str | None, _known_as("max_delay", "maxDelay")] = None
    distribution: Annotated[
        str, AfterValidator(_known_distribution), _known_as("distribution", "delayDistribution")
    ] = "uniform"
    seed: Annotated[int, _known_as("seed", "delaySeed")] = 0
    name: Annotated[str, AfterValidator(_folder_name)] | None = None
    deviation: Number | None = None
    mean: Number | None = None
    shape: Number | None = None
    scale: Number | None = None
    exponent: Number | None = None
    ranks: int | None = None
    catch_up: Annotated[Number | None, _known_as("catch_up", "catchUp")] = None
    profile: str | None = None

    def delay(self, where: str, folder: Path) -> delays.Delay:
        """The distribution, checked."""
        kind = _DELAYS[self.distribution]
        least = _delay_us(self.min_delay, f"{where}.minDelay")
        settings = self._settings(where, kind)
        if self.distribution == "empirical":
            if self.profile is None:
                advice = "make one with latecomer profile --json"
                raise InputError(must(f"{where}.profile", "name a profile", None, advice))
            settings |= read_curve(folder / self.profile)
            most = settings["delays_us"][-1]
        elif self.max_delay is None:
            raise InputError(must(f"{where}.maxDelay", "be given", None, "e.g. 2000 (ms) or '2 seconds'"))
        if self.max_delay is not None:
            most = _delay_us(self.max_delay, f"{where}.maxDelay")
        try:
            return kind(least, most, **settings)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def _settings(self, where: str, kind: type[delays.Delay]) -> dict[str, Any]:
        """The distribution's own parameters; one that it does not have is an error."""
        own = set(kind.__dataclass_fields__) - {"min_us", "max_us", "shares", "delays_us"}
        given: dict[str, Any] = {}
        for name in ("deviation", "mean", "shape", "scale", "exponent", "ranks", "catch_up"):
            value = getattr(self, name)
            if value is None:
                continue
            if name not in own:
                knows = ", ".join(sorted(own)) or "none"
                raise InputError(
                    must(f"{where}.{name}", f"be a parameter of {self.distribution}", value, f"it has {knows}")
                )
            given[name] = value
        return given


class GeneratorConfig(_Strict):
    """A source and the experiments to make of it."""

    source: Annotated[SourceConfig, _known_as("source", "dataSource")]
    experiments: Annotated[
        list[ExperimentConfig],
        Field(min_length=1, validation_alias=AliasChoices("experiments", "experimentDataConfigurations")),
    ]

    def names(self) -> list[str]:
        """What each experiment is called: its own name, or its number and what it asks."""
        names = [
            experiment.name or f"{number:02d}-{experiment.distribution}-{experiment.factor:g}"
            for number, experiment in enumerate(self.experiments)
        ]
        for name in names:
            if names.count(name) > 1:
                raise InputError(must("experiments", "have different names", name, "change one of them"))
        return names


def _delay_us(value: Number | str, where: str) -> int:
    if isinstance(value, str):
        return duration_us(value, where, zero=True)
    if not 0 <= value <= 3.2e12:
        raise InputError(must(where, "be milliseconds, not negative, at most 100 years", value, "e.g. 2000"))
    return round(value * 1_000)


def load_config(path: Path) -> GeneratorConfig:
    """Read and check a configuration file."""
    return check_config(_load(path), str(path))


def check_config(values: Any, where: str) -> GeneratorConfig:
    """Check a configuration given as a dictionary."""
    try:
        return GeneratorConfig.model_validate(values)
    except ValidationError as error:
        raise InputError(_explain(error, where)) from None


def _load(path: Path) -> Any:
    try:
        text = path.read_bytes().decode()
        return tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except OSError as error:
        raise InputError(must("configuration", "be a file that can be read", str(path), str(error.strerror))) from None
    except UnicodeDecodeError as error:
        raise InputError(must(str(path), "be UTF-8 text", f"byte {error.start + 1}", "save it as UTF-8")) from None
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as error:
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise InputError(f"{path} must be {kind}; {error}; mend that line (or name the file .toml)") from None


def _explain(error: ValidationError, where: str) -> str:
    """The first thing that is wrong, in the house form, and how many more there are."""
    found = error.errors(include_url=False)
    first = found[0]
    place = _place(first["loc"])
    rule, advice = _rule(first)
    got = first.get("input")
    shown = f"{type(got).__name__} of {len(got)}" if isinstance(got, dict | list) else repr(got)
    more = f" ({len(found) - 1} more)" if len(found) > 1 else ""
    return f"{where}: {place} must {rule}; got {shown}; {advice}{more}"


_RULES = {
    "missing": ("be given", "add it"),
    "extra_forbidden": ("not be there: no such field", "correct the name; `latecomer generate --help` lists them"),
}


def _rule(first: Any) -> tuple[str, str]:
    if first["type"] in _RULES:
        return _RULES[first["type"]]
    text = str(first["msg"]).removeprefix("Input should ").removeprefix("Value error, ")
    return text, "see `latecomer generate --help`"


def _place(location: Sequence[int | str]) -> str:
    """Where in the file, without the branches of a union that pydantic tried."""
    tried = {"int", "float", "str", "bool"}
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part not in tried]
    return "".join(parts).lstrip(".") or "the file"


def read_curve(path: Path) -> dict[str, Any]:
    """The law of lateness in a profile's JSON: (share of the late events, lateness) pairs, from waits and quantiles."""
    try:
        profile = json.loads(path.read_text())
        points = [(float(point["share"]), int(point["wait_us"])) for point in profile["completeness"]]
        quantiles = {name: int(value) for name, value in profile["lateness"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        advice = "make one with latecomer profile --json"
        raise InputError(must("profile", "be a file of latecomer profile --json", str(path), advice)) from error
    on_time = points[0][0] if points else 1.0
    if on_time >= 1.0:
        raise InputError(must("profile", "have late events", str(path), "give one of a stream with late events"))
    pairs = [((share - on_time) / (1.0 - on_time), wait) for share, wait in points if wait < quantiles["max"]]
    pairs += [(float(name[1:]) / 100.0, value) for name, value in quantiles.items() if name != "max"]
    pairs.append((1.0, quantiles["max"]))
    pairs.sort(key=lambda pair: (pair[1], pair[0]))
    shares = itertools.accumulate((share for share, _ in pairs), max)
    return {"shares": tuple(shares), "delays_us": tuple(value for _, value in pairs)}
