"""Signs that something may be wrong, and hosts that look like mirrors, in what a log comes to.

What `inspection/alarms` warns of while a crawl runs, counted over the whole log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dedup_middleware.inspection.alarms import MIN_PAGES, NEARLY_ALL
from dedup_middleware.inspection.report.tallies import host_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.inspection.report.tallies import Tallies

#: From this score on, on average, the pages of a host are those of another one.
_MIRRORED = 0.9


@dataclass(slots=True)
class Host:
    """The pages of one host that repeat others, each counted once."""

    pages: int
    """All that the log names."""
    owners: Counter[str]
    scores: defaultdict[str, list[float]]
    """By host of the owner, other hosts alone."""


def suspects(tallies: Tallies) -> dict[str, Host]:
    """Return the hosts of which so many pages repeat one page, or one other host, that a sign may be among them.

    How many pages they have in all, new ones too, the log does not say.
    """
    seen = Counter(page.host for page in tallies.last.values())
    hosts = {name: Host(count, Counter(), defaultdict(list)) for name, count in seen.items() if count >= MIN_PAGES}
    for page in tallies.last.values():
        host = hosts.get(page.host)
        if host is None or not page.owner:
            continue
        host.owners[page.owner] += 1
        if (other := host_at(page.owner)) != page.host:
            host.scores[other].append(page.score or 0.0)
    return {name: host for name, host in hosts.items() if _one_owner(host) or _mirrored(host)}


def signs(tallies: Tallies, hosts: Mapping[str, Host]) -> dict[str, list[dict[str, Any]]]:
    """Return what should be looked at first, the worst in front; *hosts* are the suspects with all their pages."""
    one_owner = [
        {"host": name, "owner": found[0], "repeats": found[1], "pages": host.pages}
        for name, host in hosts.items()
        if (found := _one_owner(host)) is not None
    ]
    return {
        "one_owner": sorted(one_owner, key=lambda sign: -sign["repeats"]),
        "fields": [
            {"field": name, "kept": count, "pages": tallies.heard}
            for name, count in tallies.fields.most_common()
            if _is_nearly_all(count, tallies.heard)
        ],
        "reasons": _reasons(tallies),
        "mirrors": sorted(_mirrors(hosts), key=lambda sign: -sign["repeats"]),
    }


def _one_owner(host: Host) -> tuple[str, int] | None:
    ((owner, repeats),) = host.owners.most_common(1) or [("", 0)]
    return (owner, repeats) if host.pages >= MIN_PAGES and 2 * repeats > host.pages else None


def _mirrored(host: Host) -> tuple[str, list[float]] | None:
    other, scores = max(host.scores.items(), key=lambda item: len(item[1]), default=("", []))
    is_most = len(scores) >= MIN_PAGES and 2 * len(scores) > host.pages
    return (other, scores) if is_most and sum(scores) >= _MIRRORED * len(scores) else None


def _mirrors(hosts: Mapping[str, Host]) -> list[dict[str, Any]]:
    # One page for all of a host is no mirror.
    found = ((name, host, _mirrored(host)) for name, host in hosts.items() if _one_owner(host) is None)
    return [
        {
            "host": name,
            "of": mirrored[0],
            "repeats": len(mirrored[1]),
            "pages": host.pages,
            "score": round(sum(mirrored[1]) / len(mirrored[1]), 4),
        }
        for name, host, mirrored in found
        if mirrored is not None
    ]


def _reasons(tallies: Tallies) -> list[dict[str, Any]]:
    asked = tallies.duplicates_met + sum(kept.pages for kept in tallies.kept.values())
    return [
        {"witness": witness, "reason": reason, "kept": kept.pages, "pages": asked}
        for (witness, reason), kept in tallies.kept.items()
        if _is_nearly_all(kept.pages, asked)
    ]


def _is_nearly_all(count: int, of: int) -> bool:
    return of >= MIN_PAGES and count >= NEARLY_ALL * of
