"""What functions return, and what that holds."""

from whosthere.adversary.everybody import (
    FoundAt as FoundAt,
    ScoresOfEverybody as ScoresOfEverybody,
)
from whosthere.auditing.follow_up import MeanOverTargets as MeanOverTargets, WhatIf as WhatIf
from whosthere.auditing.policy import Floor as Floor, Limit as Limit
from whosthere.auditing.release_check import Exposed as Exposed, ReleaseCheck as ReleaseCheck
from whosthere.auditing.result import AuditResult as AuditResult
from whosthere.auditing.risk import EverybodysRisk as EverybodysRisk
from whosthere.auditing.series import Series as Series
from whosthere.auditing.verdict import Verdict as Verdict
from whosthere.data.cities import City as City
from whosthere.data.city.people import Residents as Residents
from whosthere.data.ledger import Entry as Entry, FriendEntry as FriendEntry, Ledger as Ledger
from whosthere.data.neighbours import Neighbours as Neighbours
from whosthere.data.traces import Group as Group
from whosthere.game.plan import TargetChoice as TargetChoice
from whosthere.game.study import Round as Round
from whosthere.game.table_check import TableCheck as TableCheck
from whosthere.game.together import Band as Band, Together as Together
from whosthere.inference.finding import Finding as Finding
from whosthere.paper.claims import Judgement as Judgement, Status as Status
from whosthere.paper.description import Description as Description
from whosthere.paper.outcome import StudyResult as StudyResult
from whosthere.privacy.exact_noise import Randomness as Randomness
from whosthere.privacy.guarantees import GameGuarantee as GameGuarantee
from whosthere.privacy.ledger import GuaranteeLedger as GuaranteeLedger
from whosthere.privacy.mechanism import Member as Member
from whosthere.privacy.publish import (
    Publication as Publication,
    PublishedTable as PublishedTable,
    Stays as Stays,
)
from whosthere.privacy.release import Audited as Audited
from whosthere.privacy.step import Alphabet as Alphabet
from whosthere.privacy.scheme import Layout as Layout, TableScheme as TableScheme
from whosthere.privacy.tables import Imported as Imported
from whosthere.privacy.trade_off import TradeOff as TradeOff
from whosthere.privacy.units import Guarantee as Guarantee
from whosthere.privacy.utility import Utility as Utility
from whosthere.reporting.report import Report as Report
from whosthere.search.coarsening import Coarsening as Coarsening
from whosthere.search.recommendation import Candidate as Candidate, Recommendation as Recommendation
