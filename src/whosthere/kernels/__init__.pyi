from .count_matrix import CountMatrix, cell_sums, standardised_cells, standardised_sums
from .fitted_rates import (
    fit_rank_one,
    fit_shaped,
    relative_deviations,
    standardised_residuals,
)
from .groups import LINE, publish_groups
from .l1_logistic import minimise
from .lines import Scales, log_ratios_at_nodes, scores_of_draws, sum_log_chances
from .rows import (
    count_cells,
    count_fates,
    count_periods,
    empty_key_table,
    group_by_row,
    look_up_keys,
    merge_rows,
    most_shared,
    number_keys,
    renumber_regions,
    sample_within_periods,
    split_keys,
    sum_cells,
    take_marked,
    take_rows,
)
from .stages import Stages
from .threads import in_parts, one_thread
from .unicity import People, add_first_visits, draw_traces

__all__ = [
    "LINE",
    "CountMatrix",
    "People",
    "Scales",
    "Stages",
    "add_first_visits",
    "cell_sums",
    "count_cells",
    "count_fates",
    "count_periods",
    "draw_traces",
    "empty_key_table",
    "fit_rank_one",
    "fit_shaped",
    "group_by_row",
    "in_parts",
    "log_ratios_at_nodes",
    "look_up_keys",
    "merge_rows",
    "minimise",
    "most_shared",
    "number_keys",
    "one_thread",
    "publish_groups",
    "relative_deviations",
    "renumber_regions",
    "sample_within_periods",
    "scores_of_draws",
    "split_keys",
    "standardised_cells",
    "standardised_residuals",
    "standardised_sums",
    "sum_cells",
    "sum_log_chances",
    "take_marked",
    "take_rows",
]
