"""The one way to draw a picture, whichever it is."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from whosthere.reporting.charts.dots import DotChart, draw_dots
from whosthere.reporting.charts.places import RegionMap, Week, draw_map, draw_week
from whosthere.reporting.charts.roc import RocChart, draw_roc
from whosthere.reporting.charts.scatter import Scatter, draw_scatter
from whosthere.reporting.charts.spread import Spread, draw_spread
from whosthere.reporting.charts.tradeoff import TradeOff, draw_trade_off

if TYPE_CHECKING:
    from markupsafe import Markup


@singledispatch
def draw(chart: object) -> Markup:
    """Return a picture as SVG."""
    raise TypeError(f"{type(chart).__name__} cannot be drawn")


draw.register(DotChart, draw_dots)
draw.register(TradeOff, draw_trade_off)
draw.register(RocChart, draw_roc)
draw.register(Spread, draw_spread)
draw.register(Scatter, draw_scatter)
draw.register(RegionMap, draw_map)
draw.register(Week, draw_week)
