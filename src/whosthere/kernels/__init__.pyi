from .count_matrix import (
    CountMatrix as CountMatrix,
    cell_sums as cell_sums,
    standardised_cells as standardised_cells,
    standardised_sums as standardised_sums,
)
from .fitted_rates import (
    fit_rank_one as fit_rank_one,
    fit_shaped as fit_shaped,
    relative_deviations as relative_deviations,
    standardised_residuals as standardised_residuals,
)
from .frequencies import (
    Circles as Circles,
    Parts as Parts,
    Totals as Totals,
    Visits as Visits,
    chances_by_sum as chances_by_sum,
    chances_of_sums as chances_of_sums,
    chances_of_visits as chances_of_visits,
    expected_counts as expected_counts,
    weights_of_sums as weights_of_sums,
)
from .groups import (
    LINE as LINE,
    Noise as Noise,
    count_groups as count_groups,
    drop_small as drop_small,
    publish_at as publish_at,
    publish_counts as publish_counts,
)
from .l1 import minimise as minimise
from .lines import (
    Scales as Scales,
    find_levels as find_levels,
    information_on_levels as information_on_levels,
    log_ratios_at_nodes as log_ratios_at_nodes,
    means_without_each as means_without_each,
    sum_log_chances as sum_log_chances,
)
from .near import (
    pulls as pulls,
    slope_by_weights as slope_by_weights,
    slopes_by_cell as slopes_by_cell,
)
from .panels import compare_rounds as compare_rounds, count_scores as count_scores
from .rows import (
    count_cells as count_cells,
    count_fates as count_fates,
    count_periods as count_periods,
    empty_key_table as empty_key_table,
    group_by_row as group_by_row,
    look_up_keys as look_up_keys,
    merge_rows as merge_rows,
    most_shared as most_shared,
    number_keys as number_keys,
    renumber_regions as renumber_regions,
    sample_within_periods as sample_within_periods,
    split_keys as split_keys,
    sum_cells as sum_cells,
    take_marked as take_marked,
    take_rows as take_rows,
)
from .scoring import N_LANES as N_LANES, score_rows as score_rows
from .threads import in_parts as in_parts, one_thread as one_thread
from .unicity import (
    People as People,
    add_first_visits as add_first_visits,
    draw_traces as draw_traces,
)
