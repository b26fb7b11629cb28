"""Who was read, who was left out and why, and who was used: numbers that add up."""

from __future__ import annotations

import pandas as pd

__all__ = ["flow_table"]

_GROUPS = ("control", "patient", "other")
# In the order in which people are left out; any other reason comes after these.
_REASONS = ("missing covariate", "missing region", "impossible value", "outlier", "site without enough controls")


def flow_table(people: pd.DataFrame) -> pd.DataFrame:
    """Count the rows that were read, left out for each reason, and used, by site and group.

    Parameters
    ----------
    people
        A cohort's record: a row for everybody who was read (with visits, for each visit), with the columns group,
        used, reason and, where there are sites, site.

    Returns
    -------
    pandas.DataFrame
        Columns site, group, read, one for each reason that occurs, used. First the rows of site ``all``, then those
        of each site; of each first the group ``all``. In every row, reasons and used add up to read.

    Examples
    --------
    >>> record = pd.DataFrame({"group": ["control", "patient", "patient"], "used": [True, True, False]})
    >>> flow_table(record.assign(reason=["", "", "outlier"])).to_numpy().tolist()
    [['all', 'all', 3, 1, 2], ['all', 'control', 1, 0, 1], ['all', 'patient', 2, 1, 1]]
    """
    used = people["used"].astype(bool)
    reason = people["reason"].astype(object).where(people["reason"].notna(), "")
    reason = reason.mask(~used & (reason == ""), "not said").mask(used, "")
    found = set(reason[~used])
    reasons = [name for name in _REASONS if name in found] + sorted(found - set(_REASONS))
    groups = [name for name in _GROUPS if name != "other" or (people["group"] == "other").any()]
    everybody = pd.Series(True, index=people.index)
    places = [("all", everybody)]
    if "site" in people:
        sites = people["site"].astype(str)
        places += [(site, sites == site) for site in sorted(sites.unique())]
    rows = []
    for site, here in places:
        for group in ("all", *groups):
            who = here if group == "all" else here & (people["group"] == group)
            counts = {name: int((who & (reason == name)).sum()) for name in reasons}
            of_all = {"read": int(who.sum()), **counts, "used": int((who & used).sum())}
            rows.append({"site": site, "group": group} | of_all)
    return pd.DataFrame(rows)
