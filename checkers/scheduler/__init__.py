"""Checks of UBEP's token scheduler: ``check(SchedulerQuestion(...))`` gives one ``Finding`` each.

``question`` what is asked and answered · ``contracts`` on one routing · ``exhaustive`` on all small
inputs · ``symbolic`` (z3) the search for one number of experts and all routings · ``induction`` the
search without bound · ``capacity`` the per-hop bound · ``vectorised`` large inputs with numpy ·
``program`` program (1) and its optimum · ``hardness`` appendix B · ``aiv_split`` and ``figure14``
appendix A · ``rank_order`` rank-aware reordering · ``answer`` puts the contracts together.
"""

from syncproof.checkers.scheduler.answer import check
from syncproof.checkers.scheduler.question import Finding, SchedulerQuestion

__all__ = ["Finding", "SchedulerQuestion", "check"]
