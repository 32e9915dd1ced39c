from . import attacks, knowledge, mechanisms, regions, results
from ._version import __version__
from .auditing.loading import load
from .auditing.options import AuditOptions, Block
from .auditing.policy import Policy
from .auditing.run import AuditFailedError
from .data.cities import simulate
from .data.city.models import CityModel
from .data.epochs import Epochs
from .data.reading.columns import Columns
from .data.reading.queries import Query
from .data.reading.read import Filters, read_records
from .data.regions import Regions
from .data.traces import Traces
from .errors import InputError
from .front import (
    NotAuditedWarning,
    attack,
    audit,
    publish,
    recommend,
    report,
    reproduce,
    rounds,
)
from .privacy.release import Release
from .privacy.tables import TableReader
from .privacy.utility import utility

__all__ = [
    "AuditFailedError",
    "AuditOptions",
    "Block",
    "CityModel",
    "Columns",
    "Epochs",
    "Filters",
    "InputError",
    "NotAuditedWarning",
    "Policy",
    "Query",
    "Regions",
    "Release",
    "TableReader",
    "Traces",
    "__version__",
    "attack",
    "attacks",
    "audit",
    "knowledge",
    "load",
    "mechanisms",
    "publish",
    "read_records",
    "recommend",
    "regions",
    "report",
    "reproduce",
    "results",
    "rounds",
    "simulate",
    "utility",
]
