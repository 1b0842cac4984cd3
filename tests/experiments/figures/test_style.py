"""How figures look: axes, marks, words and colors, and what a caption says of them."""

from __future__ import annotations

import pytest

from composcope.experiments.figures import drawing, style
from composcope.experiments.figures.look import Look, _fit
from composcope.experiments.figures.scatters import marks

from ..bare_runs import bare_run


def test_numbers_are_left_out_of_a_narrow_axis_and_names_never() -> None:
    left = []
    for names in ([f"{i / 8}" for i in range(24)], [f"layer {i}" for i in range(24)], ["1", "all"] * 12):
        fig, ax = style.one_panel(1.2, 1.2)
        ax.set_xticks(range(len(names)), names)
        fig.draw_without_rendering()
        _fit(ax)
        left.append(len(ax.get_xticks()))
    assert left[0] < 24 and left[1:] == [24, 24]


def test_a_caption_counts_marks_names_methods_of_intervals_and_where_the_runs_come_from() -> None:
    rows = [{"n": 9, "interval": "t", "low": 0.1}, {"n": 40, "interval": "korn", "low": 0.1},
            {"n": 3, "interval": "none of this", "low": None}, {"x": 1}]  # fmt: skip
    assert style.counts(rows) == "n = 3 to 40 per mark." and style.counts(rows[:1]) == "n = 9 per mark."
    assert style.counts(rows[3:]) == "" and style.interval_methods(rows) == "Intervals: 95 %, korn, t."
    assert style.interval_methods(rows[2:]) == "No intervals."
    runs = [bare_run(name="a", commands=["go", "look"]), bare_run(name="b", commands=["go"]), bare_run(name="c")]
    assert drawing.source(runs) == "Runs: a, b, c. Made by: go ; look."
    assert [style.weight(n) for n in (None, 4, 5, 14, 15)] == ["hollow", "hollow", "marked", "marked", "solid"]
    assert [style.counted(n) for n in (None, 4, 5, 14, 15)] == ["n=0", "n=4", "n=5*", "n=14*", "n=15"]


def test_a_legend_has_names_that_begin_with_an_underscore() -> None:
    fig, panels = style.grid_of(1, 2, 3, 3)
    about = {"value": 0.5, "n": 20, "model": "m"}
    style.points(panels[0][0], [dict(about)], [0], style.color(0), "_mine")
    style.bars(panels[0][1], [{**about, "step": "_step"}], "step", ["_step"], ["m"], ["m"])
    style.shared_legend(fig)
    assert [text.get_text().strip() for text in fig.legends[0].get_texts()] == ["_mine", "_step"]


def test_no_two_of_twenty_series_look_alike() -> None:
    fig, panels = style.grid_of(1, 2, 4, 4)
    rows = [{"model": f"m{i}", "kind": f"m{i}", "value": 0.5, "n": 30, "x": 0.5, "n_x": 30} for i in range(20)]
    marks(panels[0][0], rows, "", "", "")
    style.dots(panels[0][1], rows, "kind", [r["kind"] for r in rows], [r["model"] for r in rows], [])
    for ax in fig.axes:
        handles, names = ax.get_legend_handles_labels()
        looks = {(h.get_color(), h.get_marker()) for h in handles}  # type: ignore[attr-defined]
        assert len(names) == len(looks) == 20


def test_text_in_a_cell_is_dark_on_light_and_light_on_dark_over_any_range() -> None:
    cells = ((0, 1, 0.05), (0, 1, 0.95), (5, 9, 5.2), (5, 9, 8.9), (-1, 1, -0.9))
    found = [style.legible(v, low, high, style.SEQUENTIAL) for low, high, v in cells]
    assert found == [style.ON_LIGHT, style.ON_DARK, style.ON_LIGHT, style.ON_DARK, style.ON_LIGHT]


def test_the_words_beside_a_bar_stand_behind_its_interval_and_a_share_fits_its_axis() -> None:
    _, ax = style.one_panel(4, 3)
    style.bars(ax, [{"model": "m", "s": "a", "value": 0.3, "low": 0.1, "high": 0.6, "n": 9}], "s", ["a"], ["m"], ["m"])
    (said,) = ax.texts
    assert said.get_text() == "n=9*" and said.get_position()[0] > 0.6
    _, few = style.one_panel(4, 3)
    style.bars(few, [{"model": "m", "s": "a", "value": 0.3, "low": 0.1, "high": 0.6, "n": 4}], "s", ["a"], ["m"], ["m"])
    assert not few.lines and few.texts[0].get_text() == "n=4", "fewer than five cases have no interval"
    _, half = style.one_panel(4, 3)
    style.points(half, [{"value": 3.0, "low": None, "high": 5.0, "n": 40}], [0], style.color(0), "d50")
    assert len(half.lines) == 1, "an interval with one end is not drawn"
    names = [f"m{i} (n={n})" for i, n in enumerate((1, 1, 1, 1, 7, 9, 7))]
    assert style._listed(names).endswith("m3 (n=1); and 3 more (n=7, n=9; column “drawn” of the csv)")
    assert style._listed(names[:4]) == "; ".join(names[:4])
    style.percent_up_to(ax, 0.4)
    assert 0.4 < ax.get_ylim()[1] < 0.5


@pytest.mark.parametrize(("axis", "low"), [("x", 0.0), ("y", 0.0), ("x", 0.03)])
def test_a_rate_axis_says_percent_at_its_quarters(axis: str, low: float) -> None:
    _, ax = style.one_panel(3, 3)
    style.percent(ax, axis, low)
    own = ax.xaxis if axis == "x" else ax.yaxis
    assert [t.get_text() for t in own.get_ticklabels()] == ["0 %", "25 %", "50 %", "75 %", "100 %"]
    assert list(own.get_ticklocs()) == [0, 0.25, 0.5, 0.75, 1]
    assert tuple(own.get_view_interval()) == pytest.approx((low - 0.03, 1.03))


def test_signed_axes_show_points_and_percent_with_true_minus_signs() -> None:
    _, ax = style.one_panel(6, 3)
    for show, wanted in ((style.signed_points, ["−50", "0", "+50"]), (style.signed_percent, ["−50 %", "0 %", "+50 %"])):
        show(ax)
        assert [ax.xaxis.get_major_formatter()(v, None) for v in (-0.5, 0.0, 0.5)] == wanted


def test_titles_of_several_panels_stay_and_ticks_shrink_with_the_width() -> None:
    for n, kept in ((1, ""), (2, "title")):
        fig, panels = style.grid_of(1, n, 5, 3)
        for ax in panels[0]:
            style.dress(ax, "title")
        before = panels[0][0].get_xticklabels()[0].get_fontsize()
        Look("column", title=False).apply(fig)
        assert panels[0][0].get_title(loc="left").replace("\n", "")[:5] == kept
        ax = panels[0][0]
        ax.set_xlim(0, 50)  # ticks that are made later
        assert ax.get_xticklabels()[-1].get_fontsize() == pytest.approx(float(before) * max(3.35 / (5 * n), 0.72))
