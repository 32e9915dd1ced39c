from . import (
    attacks as attacks,
    knowledge as knowledge,
    mechanisms as mechanisms,
    regions as regions,
    results as results,
)
from ._version import __version__ as __version__
from .auditing.loading import load as load
from .auditing.options import AuditOptions as AuditOptions, Block as Block
from .auditing.policy import Policy as Policy
from .data.cities import simulate as simulate
from .data.city.models import CityModel as CityModel
from .data.epochs import Epochs as Epochs
from .data.frames import ArrowFrame as ArrowFrame
from .data.reading.queries import Query as Query
from .data.reading.read import read_records as read_records
from .data.regions import Regions as Regions
from .data.traces import Traces as Traces
from .errors import AuditFailedError as AuditFailedError, InputError as InputError
from .front.audits import (
    audit as audit,
    recommend as recommend,
    report as report,
    reproduce as reproduce,
    rounds as rounds,
)
from .front.releases import (
    NotAuditedWarning as NotAuditedWarning,
    attack as attack,
    check as check,
    publish as publish,
)
from .privacy.release import Release as Release
from .privacy.tables import TableReader as TableReader
from .privacy.utility import utility as utility
