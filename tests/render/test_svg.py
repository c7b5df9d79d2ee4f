import re
from typing import Any
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from harness.errors import HarnessError
from harness.render import figure, svg, theme
from harness.render.plain import plain


def dressed(made: Any) -> dict[str, Any]:
    return theme.dress(plain(made.to_dict()))


def example() -> Any:
    made = theme.figure("Prompt, tokens", "TTFT, ms", log_x=True)
    made.add_scatter(
        x=[1, 10, 100], y=[1, 2, None], error_y={"array": [1, 1, 1]}, **theme.style("vllm")
    )
    hue = theme.fade(theme.colour("sglang"), 0.2)
    made.add_scatter(x=[1, 10], y=[1, 2], mode="lines", line={"color": theme.colour("sglang")})
    made.add_scatter(x=[1, 10], y=[3, 4], mode="lines", fill="tonexty", fillcolor=hue)
    made.add_hline(y=2, line={"dash": "dash"})
    made.add_vrect(x0=2, x1=5, fillcolor=theme.REFERENCE, opacity=0.2)
    made.add_annotation(x=1, y=2, text="a < b & <b>c</b>", showarrow=True)
    return made


def test_the_same_figure_gives_the_same_bytes_and_good_xml() -> None:
    first, second = svg.draw(dressed(example()), "00-a"), svg.draw(dressed(example()), "00-a")
    assert first == second
    ElementTree.fromstring(
        first.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    )


def test_colours_are_variables_and_ids_belong_to_the_figure() -> None:
    drawn = svg.draw(dressed(example()), "00-a")
    assert "var(--tbt-vllm)" in drawn and "var(--tbt-ink)" in drawn and "var(--tbt-grid)" in drawn
    assert not re.search("|".join(theme.variables()), drawn)
    assert set(re.findall(r' id="([^"]*)"', drawn)) <= set(re.findall(r'#(00-a-[^")]*)', drawn))
    assert "<style" not in drawn and "<!--" not in drawn
    assert "a &lt; b &amp; c" in drawn


def test_a_file_of_its_own_has_no_variables_left() -> None:
    values = {f"--tbt-{name}": "#123456" for name in ("vllm", "sglang", "reference", "ink", "grid")}
    alone = svg.standalone(svg.draw(dressed(example()), "x"), values)
    assert "var(" not in alone and alone.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    ElementTree.fromstring(alone)  # whole by itself: every namespace that it uses is declared


def test_a_see_through_bar_is_see_through_in_the_picture() -> None:
    made = theme.figure("", "")
    made.add_bar(x=[1], y=["a"], orientation="h", marker={"color": "rgba(0,114,178,0.35)"})
    assert "opacity: 0.35" in svg.draw(dressed(made), "x")


@pytest.mark.parametrize("mode", ["stack", "group", "overlay"])
@pytest.mark.parametrize("orientation", ["h", "v"])
def test_bars_lie_where_plotly_puts_them(mode: str, orientation: str) -> None:
    made = theme.figure("", "")
    for tint in ("vllm", "sglang"):
        names, values = ["a", "b"], [2, 4]
        x, y = (values, names) if orientation == "h" else (names, values)
        made.add_bar(x=x, y=y, orientation=orientation, marker={"color": theme.colour(tint)})
    made.update_layout(barmode=mode)
    assert svg.draw(dressed(made), "bars").count("fill: var(--tbt-vllm)") == 2


def test_heatmap_subplots_and_steps() -> None:
    made = go.Figure(go.Heatmap(z=[[1, 2], [3, 4]], x=["a", "b"], y=[1, 2]))
    made.add_scatter(x=[1, 2], y=[1, 2], line={"shape": "hv"}, xaxis="x2", yaxis="y2")
    made.update_layout(xaxis={"domain": [0, 0.4]}, xaxis2={"domain": [0.6, 1], "anchor": "y2"})
    made.update_layout(yaxis2={"anchor": "x2"})
    assert "<image" in svg.draw(dressed(made), "heat")


def test_what_cannot_be_drawn_stops_the_build() -> None:
    with pytest.raises(HarnessError, match="'pie' has no static picture"):
        svg.draw(dressed(go.Figure(go.Pie(values=[1]))), "x")
    with pytest.raises(HarnessError, match="without a trace"):
        svg.draw(dressed(go.Figure()), "x")


def test_data_for_the_browser_is_plain_rounded_and_small() -> None:
    made = theme.figure("", "")
    made.add_scatter(x=[1.23456789, float("nan")], y=[1e6, 2], **theme.style("vllm"))
    data = figure.draw(made, "a").data
    assert '"x":[1.23457,null]' in data and '"y":[1000000,2]' in data
    assert "template" not in data and "bdata" not in data
    assert '"color":"var(--tbt-vllm)"' in data
    made.add_scatter(x=[i / 7 for i in range(2000)], y=[i / 3 for i in range(2000)])
    with pytest.raises(HarnessError, match=r"figure a: its data is .* the limit is 15,000"):
        figure.draw(made, "a")


def test_a_slider_s_picture_shows_the_level_it_starts_with_and_panes_share_one_axis() -> None:
    chart = theme.panes("seconds", ["TTFT, s", "requests"], height=300)
    for level, x in ((0, [1, 2]), (1, [3, 9])):
        chart.add_scatter(x=x, y=[1, 2], name=f"level {level}", meta={"level": level})
        chart.add_scatter(x=[4, 5], y=[1, 2], yaxis="y2", name="always")
    theme.levels(chart, ["low", "high"], 1)
    assert [t["name"] for t in svg.shown(dressed(chart))] == ["always", "level 1", "always"]
    drawn = svg.draw(dressed(chart), "f", 720)
    assert "level 1" in drawn and "level 0" not in drawn
    assert drawn.count(">seconds<") == 1  # under the lowest pane alone
    assert figure.draw(chart, "f").level == "high"
