"""What attackers know of their targets: rules for all of them, and what is known of one."""

from whosthere.adversary.knowledge import (
    All as All,
    Habits as Habits,
    Knowledge as Knowledge,
    Known as Known,
    KnownRegions as KnownRegions,
    KnownVisits as KnownVisits,
    Regions as Regions,
    Share as Share,
)
from whosthere.adversary.targets import read_target as read_target, write_target as write_target
