"""The command line of the benchmark, and its table of ratios."""

from typing import Any

import pytest

from bench.__main__ import PARTS, options_from
from bench.report import Key, Ratio, Report, Results, rows
from bench.table import NOTHING


def results(*rounds: tuple[float, float]) -> Results:
    """Return rounds of one figure: ours and the floor's."""
    made = Results()
    for ours, floor in rounds:
        made.add("ours", "firehose", {"per_cpu_s": ours, "p50_ms": 8.0})
        made.add("floor", "firehose", {"per_cpu_s": floor, "p50_ms": 2.0})
    return made


def lines(found: Results, base: str = "") -> dict[tuple[str, str], dict[str, Any]]:
    report = Report(found, options_from([]).plan, base)
    return {(line["figure"].rpartition(": ")[2], line["yardstick"]): line for line in report.lines()}


def test_a_ratio_is_computed_for_each_round() -> None:
    """The table shows the median of the ratios, not the ratio of the medians."""
    found = results((100, 200), (300, 300), (80, 100))
    assert found.ratio(Key("ours", "firehose"), Key("floor", "firehose"), "per_cpu_s") == Ratio(0.8, 0.5, 1.0)
    line = lines(found)["deliveries/CPU-s", "floor"]
    assert (line["ours"], line["yardstick_value"], line["ratio"]) == (100, 200, 0.8)
    assert (line["asked"], line["reached"]) == (">= 0.70", True)


def test_a_yardstick_that_was_not_measured_leaves_a_gap() -> None:
    """The row has our figure only."""
    found = Results()
    found.add("ours", "firehose", {"per_cpu_s": 100.0})
    line = lines(found)["deliveries/CPU-s", "floor"]
    assert (line["ours"], line["yardstick_value"], line["ratio"], line["reached"]) == (100.0, None, None, None)
    assert f"| 100  | {NOTHING}" in Report(found, options_from([]).plan).text()


def test_beside_another_commit_each_figure_has_one_row_and_nothing_is_asked() -> None:
    """The other commit takes the place of all yardsticks."""
    found = Results()
    for part in ("firehose", "me"):
        found.add("ours", part, {"per_cpu_s": 150.0, "per_s": 30.0})
        found.add("abc1234", part, {"per_cpu_s": 100.0, "per_s": 10.0})
    made = lines(found, "abc1234")
    assert {name: (line["ratio"], line["asked"]) for (name, _), line in made.items()} == {
        "deliveries/CPU-s": (1.5, ""), "/s": (3.0, ""),
    }  # fmt: skip


def test_every_row_belongs_to_a_part_of_the_command_line() -> None:
    """`--only` can select each row, and each part has a row."""
    assert {row.group for row in rows(options_from([]).plan)} == set(PARTS)


def test_the_command_line_selects_parts_in_their_order() -> None:
    """The order of a run does not depend on how the parts are named."""
    assert options_from(["--only", "connects,firehose"]).parts == ("firehose", "connects")
    assert options_from([]).parts == PARTS
    assert options_from(["--against", "main"]).against == "main"


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names it."""
    with pytest.raises(SystemExit):
        options_from(["--only", "firehose,speed"])
    assert "no such part: speed" in capsys.readouterr().err
