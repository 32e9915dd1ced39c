from .l1_logistic import column_sums, minimise, weighted_column_sums
from .low_rank import standardised_residuals
from .rank_one import fit_rank_one, fit_shaped
from .rows import (
    count_cells,
    count_periods,
    group_by_row,
    sample_within_periods,
    sum_cells,
    take_marked,
    take_rows,
)
from .unicity import People, add_traces, draw_traces

__all__ = [
    "People",
    "add_traces",
    "column_sums",
    "count_cells",
    "count_periods",
    "draw_traces",
    "fit_rank_one",
    "fit_shaped",
    "group_by_row",
    "minimise",
    "sample_within_periods",
    "standardised_residuals",
    "sum_cells",
    "take_marked",
    "take_rows",
    "weighted_column_sums",
]
