from . import attacks, knowledge, mechanisms, regions, results
from ._version import __version__
from .auditing.loading import load
from .auditing.options import AuditOptions, Block
from .auditing.policy import Policy
from .data.cities import simulate
from .data.city.models import CityModel
from .data.epochs import Epochs
from .data.frames import ArrowFrame
from .data.reading.queries import Query
from .data.reading.read import read_records
from .data.regions import Regions
from .data.traces import Traces
from .errors import InputError
from .front import (
    AuditFailedError,
    NotAuditedWarning,
    attack,
    audit,
    publish,
    recommend,
    report,
    reproduce,
)
from .privacy.release import Release
from .privacy.tables import TableReader
from .privacy.utility import utility

__all__ = [
    "ArrowFrame",
    "AuditFailedError",
    "AuditOptions",
    "Block",
    "CityModel",
    "Epochs",
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
    "simulate",
    "utility",
]
