"""Pictures show what their values say, within their frames, and run nothing."""

import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whosthere.reporting.charts.people import (
    Curve,
    Place,
    RegionMap,
    RocChart,
    Scatter,
    Spread,
    Week,
    shade,
)
from whosthere.reporting.charts.risk import (
    OUTCOMES,
    Dot,
    DotChart,
    Protection,
    TradeOff,
    numbered_keys,
)
from whosthere.reporting.charts.svg import (
    WIDTH,
    Key,
    Linear,
    Logarithmic,
    element,
    picture,
    text,
)

EVIL = '<script>alert("1")</script>\'&'
A, B = numbered_keys(["a", EVIL]).values()
RATES = np.linspace(0, 1, 11)
CURVE = Curve(Key(EVIL, "s0"), RATES, np.sqrt(RATES), RATES, np.minimum(1.2 * np.sqrt(RATES), 1))
CHARTS = {
    "dots": DotChart(
        EVIL,
        "AUC",
        (
            Protection(
                EVIL,
                (Dot(A, 0.7, 0.6, 0.8, EVIL), Dot(B, 0.5, None, None, "b")),
                {"ceiling": 0.9, "guarantee": 1.0},
            ),
        ),
        0.6,
        0.4,
        1.0,
    ),
    "no rows": DotChart("t", "AUC", (), None, 0.4, 1.0),
    "trade-off": TradeOff(
        EVIL,
        "risk",
        (
            Protection(
                EVIL, (Dot(OUTCOMES["accept"], 0.5, 0.4, 0.6, EVIL),), {"ceiling": 0.6}, 1, 0.9
            ),
            Protection(
                "b", (Dot(OUTCOMES["reject"], 0.9, None, None, "b"),), {"guarantee": 1.0}, 2, 0.0
            ),
        ),
        0.6,
        0.0,
        1.0,
        "kept",
        0.5,
    ),
    "front": TradeOff(
        "t",
        "risk",
        tuple(
            Protection(EVIL, (Dot(OUTCOMES["accept"], risk, None, None, EVIL),), {}, i, 0.5)
            for i, risk in enumerate((0.5, 0.7), 1)
        ),
        None,
        0.0,
        1.0,
        "kept",
        None,
        front=(1,),
    ),
    "roc": RocChart(EVIL, (CURVE,), 0.1, None),
    "log roc": RocChart(EVIL, (CURVE,), None, 0.001),
    "spread": Spread(EVIL, "AUC", (0.5, 0.95, 1.0, 0.0), (("median:", 0.7),)),
    "scatter": Scatter(EVIL, "visits", "AUC", ((3.0, 0.4, EVIL), (900.0, 1.0, "b")), True),
    "one point": Scatter("t", "visits", "AUC", ((3.0, 0.4, "a"),)),
    "no point": Scatter("t", "visits", "AUC", ()),
    "diagonal": Scatter("t", "true", "estimated", ((0.1, 0.2, "a"),), diagonal=True),
    "map": RegionMap(EVIL, (Place(9.0, 45.0, "q4", EVIL), Place(9.1, 45.1, "none", "b"))),
    "outlines": RegionMap(
        "t",
        (
            Place(
                9.5,
                45.5,
                "q4",
                EVIL,
                [[9, 45, 10, 45, 10, 46, 9, 46], [9.4, 45.4, 9.6, 45.4, 9.5, 45.6]],
            ),
            Place(10.5, 45.5, "none", "b", [[10, 45, 11, 45, 11, 46, 10, 46]]),
        ),
    ),
    "one place": RegionMap("t", (Place(9.0, 45.0, "q0", "a"),)),
    "week": Week(EVIL, tuple((f"q{i % 5}", EVIL) for i in range(168))),
}
each = pytest.mark.parametrize("chart", CHARTS.values(), ids=list(CHARTS))


def parsed(chart):
    return ElementTree.fromstring(str(chart.draw()))


@pytest.mark.parametrize("low", np.linspace(0, 1, 11))
@pytest.mark.parametrize("further", [0, 0.02, 0.18, 0.35, 0.7])
def test_no_line_crosses_the_name_of_another(low, further):
    marked = (("median:", low), ("90 %:", min(low + further, 1.0)))
    drawn = parsed(Spread("t", "AUC", (0.5,), marked))
    lines = [
        [float(end) for end in re.findall(r"[\d.]+", one.get("d"))]
        for one in drawn.iter()
        if one.get("class") == "marked"
    ]
    names = [one for one in drawn.iter() if (one.text or "").startswith(("median", "90"))]
    assert len(lines) == len(names) == 2
    for name in names:
        # No letter of the font is wider than that on average.
        at, width = float(name.get("x")), 6.3 * len(name.text)
        first = at - width if name.get("text-anchor") == "end" else at
        assert first > 0
        assert first + width < WIDTH
        for x, top, *_ in lines:
            assert not (first < x < first + width and top < float(name.get("y")) - 4)


@each
def test_are_well_formed_and_inert(chart):
    root = parsed(chart)
    assert root.tag == "svg"
    assert not [node for node in root.iter() if node.tag == "script"]
    assert root.get("role") == "img"
    assert root.get("aria-label") == chart.title


@each
def test_need_no_style_attribute_and_no_address(chart):
    svg = str(chart.draw())
    assert "style=" not in svg
    assert "href" not in svg
    assert "://" not in svg


@each
def test_everything_lies_within_the_picture(chart):
    root = parsed(chart)
    _, _, width, height = map(float, root.get("viewBox").split())
    for node in root.iter():
        for name, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            if node.get(name) is not None:
                assert 0 <= float(node.get(name)) <= most, ElementTree.tostring(node)
        if node.tag == "path" and node.get("transform") is None:
            numbers = list(map(float, re.findall(r"-?[\d.]+", node.get("d"))))
            assert all(0 <= x <= width for x in numbers[::2])
            assert all(0 <= y <= height for y in numbers[1::2])
        assert "nan" not in str(node.attrib)


def test_every_point_says_its_value():
    titles = [node.text for node in parsed(CHARTS["dots"]).iter("title")]
    assert EVIL in titles
    assert "b" in titles
    assert "ceiling: 0.900" in titles


def test_bars_of_a_histogram_hold_everybody():
    said = [node.text for node in parsed(CHARTS["spread"]).iter("title")]
    assert sum(int(text.split()[0]) for text in said) == 4
    assert "2 of 4 targets: 0.95 to 1.00" in said


def test_series_differ_by_shape_and_not_only_by_colour():
    series = list(numbered_keys("abcdef").values())
    assert len({one.shape for one in series}) == len({one.class_ for one in series}) == 6


def test_a_week_has_168_hours():
    shown = [node for node in parsed(CHARTS["week"]).iter("rect") if node.find("title") is not None]
    assert len(shown) == 168


def test_north_is_up():
    south, north = parsed(CHARTS["map"]).findall("circle")
    assert float(north.get("cy")) < float(south.get("cy"))


def test_outlines_are_drawn_where_they_are_known():
    """Two squares of a degree that touch, the first with a hole; wider than high in the south."""
    with_hole, square, bar = (node for node in parsed(CHARTS["outlines"]).iter("path"))
    assert with_hole.get("fill-rule") == "evenodd"
    assert with_hole.get("d").count("M") == with_hole.get("d").count("Z") == 2
    west, east = (
        np.reshape([float(v) for v in re.findall(r"[\d.]+", node.get("d"))], (-1, 2))
        for node in (with_hole, square)
    )
    assert west[:, 0].max() == east[:, 0].min()
    wide, high = np.ptp(east, axis=0)
    assert wide / high == pytest.approx(np.cos(np.radians(45.5)), abs=0.01)
    assert not parsed(CHARTS["outlines"]).findall("circle")
    # The bar is as long as it says: a degree of latitude is 111.2 km.
    ends = [float(v) for v in re.findall(r"[\d.]+", bar.get("d"))][::2]
    [said] = [node.text for node in parsed(CHARTS["outlines"]).iter("text") if "km" in node.text]
    assert (max(ends) - min(ends)) / high * 111.2 == pytest.approx(float(said[:-3]), rel=0.01)


@given(st.floats(-1, 2), st.floats(0.01, 5))
def test_shades_grow_with_values(value, largest):
    assert shade(value, largest) in {"q0", "q1", "q2", "q3", "q4"}
    assert shade(value, largest) <= shade(min(value + 0.1, largest), largest) or value > largest
    assert shade(largest, largest) == "q4"
    assert shade(None, largest) == "none"


@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e6), st.floats(-2e6, 2e6))
def test_linear_scales_stay_within_their_ends(low, span, value):
    scale = Linear(low, low + span, 10, 200)
    assert 10 <= scale(value) <= 200
    ticks = [at for at, _ in scale.ticks()]
    assert 2 <= len(ticks) <= 11
    assert ticks == sorted(ticks)


@given(st.floats(1e-5, 10), st.floats(1.5, 1e6), st.floats(0, 1e7))
def test_logarithmic_scales_stay_within_their_ends(low, factor, value):
    scale = Logarithmic(low, low * factor, 200, 10)
    assert 10 - 1e-9 <= scale(value) <= 200
    assert math.isclose(scale(low * math.sqrt(factor)), 105, rel_tol=1e-6)


def test_ticks_are_round():
    assert [text for _, text in Linear(0.4, 1, 0, 1).ticks()] == ["0.4", "0.6", "0.8", "1.0"]
    assert [text for _, text in Logarithmic(0.001, 1, 0, 1).ticks()] == [
        "0.001",
        "0.01",
        "0.1",
        "1",
    ]


def test_elements_escape_what_comes_in():
    made = str(element("g", EVIL, class_=EVIL, data_name=EVIL))
    assert "<script" not in made
    assert ElementTree.fromstring(made).get("data-name") == EVIL
    assert "<script" not in str(text(1, 2, EVIL, "tick"))
    assert "<script" not in str(picture(2, EVIL))
