"""What attackers know of their targets: rules for all of them, and what is known of people."""

from whosthere.adversary.knowledge import (
    All as All,
    Knowledge as Knowledge,
    Regions as Regions,
    Share as Share,
)
from whosthere.adversary.suspects import (
    Habits as Habits,
    Known as Known,
    Places as Places,
    visits_of_one as visits_of_one,
)
from whosthere.adversary.targets import read_target as read_target, write_target as write_target
