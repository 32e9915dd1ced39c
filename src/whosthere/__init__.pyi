from . import attacks, mechanisms, regions
from ._version import __version__
from .auditing.options import AuditOptions, Block
from .auditing.policy import Policy
from .auditing.result import AuditResult
from .data.cities import simulate
from .data.epochs import Epochs
from .data.reading.queries import Query
from .data.reading.read import read_records
from .data.regions import Regions
from .data.traces import Traces
from .errors import InputError
from .front import attack, audit, publish, recommend, report, reproduce
from .privacy.mechanism import Mechanism
from .privacy.release import Release
from .privacy.tables import TableReader
from .privacy.utility import utility

__all__ = [
    "AuditOptions",
    "AuditResult",
    "Block",
    "Epochs",
    "InputError",
    "Mechanism",
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
    "mechanisms",
    "publish",
    "read_records",
    "recommend",
    "regions",
    "report",
    "reproduce",
    "simulate",
    "utility",
]
