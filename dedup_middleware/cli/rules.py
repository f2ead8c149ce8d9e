"""``scrapy dedup rules``: lists and exports which variables in URLs never changed the text, as the records show it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from dedup_middleware.cli.options import HOST, Subcommand, option
from dedup_middleware.common.permissions import whole_file
from dedup_middleware.common.urls import host_of, is_under
from dedup_middleware.model import VerdictKind
from dedup_middleware.order.url_rules import LEAST_TEXTS, Rules
from dedup_middleware.records.file import Records
from dedup_middleware.text.clauses import one_line
from dedup_middleware.text.terminal import plural, tell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dedup_middleware.cli.call import Call
    from dedup_middleware.order.url_rules import Rule
    from dedup_middleware.records.file import Record

# What duplicate-url-discarder reads; lower numbers are applied first there.
_ORDER, _PROCESSOR = 100, "queryRemoval"
# An empty line, which is nothing in JSON, marks a file of ours: the format has no place for a name.
_EXPORT = b"[\n\n"
_NONE = (
    "No URL rule found yet. A rule needs two texts on one form of URL, each of them at two URLs that differ in the "
    "same part. A word in the path belongs to the form: /story/ferry?sid=1 and /story/bridge?sid=1 have two forms, and "
    "/story/17?sid=1 and /story/18?sid=1 have one."
)
_WITH_TEXT = {kind.value for kind in VerdictKind} - {VerdictKind.UNCHECKED.value, VerdictKind.GONE.value}


def learned(records: Iterable[Record], host: str | None = None) -> list[Rule]:
    """Return the rules of *host*, or all, as crawls would learn them from *records*: those with most texts first.

    Each crawl is read by itself: in another one, another page may be the original of the same text. Of several crawls
    that have a rule, the highest counts are taken.
    """
    crawls, known = defaultdict[str, Rules](Rules), set[tuple[str, str]]()
    for record in records:
        if record.verdict not in _WITH_TEXT:
            continue
        rules, text = crawls[record.crawl], (record.is_duplicate and record.original_url) or record.url
        # The record of the original may be in another file.
        if (record.crawl, text) not in known:
            known.add((record.crawl, text))
            rules.learn(text, text)
        if text != record.url:
            rules.learn(record.url, text)
    found: dict[str, Rule] = {}
    for rule in (rule for rules in crawls.values() for rule in rules.all()):
        best = found.setdefault(rule.name, rule)
        best.texts = max(best.texts, rule.texts, key=len)
        if rule.against > best.against:
            best.against, best.against_url = rule.against, rule.against_url
    chosen = (each for each in found.values() if host is None or is_under(host_of(f"http://{each.shape}"), [host]))
    return sorted((each for each in chosen if len(each.texts) >= LEAST_TEXTS), key=lambda rule: -len(rule.texts))


def run(call: Call) -> None:
    """Print the rules, or write them into a file."""
    opts = call.opts
    found = learned(Records(call.log), call.wanted.host)
    if opts.export is not None:
        _export(found, Path(opts.export))
        return
    if not found and not opts.json:
        print(_NONE)
    call.show_each(found, _text, lambda rule: json.dumps(_as_dict(rule)))


def _as_dict(rule: Rule) -> dict[str, object]:
    counts = {"texts": len(rule.texts), "against": rule.against, "against_url": rule.against_url}
    return {"name": rule.name, "holds": rule.holds} | counts


def _text(rule: Rule) -> str:
    """Return a rule for a person: a line of counts, and below it the rule."""
    against = f"\n    against: {one_line(rule.against_url)}" if rule.against_url else ""
    state = "holds" if rule.holds else "fails"
    return f"{state}  {plural(len(rule.texts), 'text')}, {rule.against} against\n    {one_line(rule.name)}{against}"


def _export(found: list[Rule], path: Path) -> None:
    """Write the rules without counter-examples that duplicate-url-discarder can apply; count the others."""
    rules = []
    sound = [rule for rule in found if not rule.against]
    for rule in sound:
        start, left_out = rule.shape.removesuffix("*"), sorted(rule.left_out)
        # It matches the start of a path, so a variable may only be at the end of it.
        if "*" not in start and not any(name[:1] in ";0123456789" for name in left_out):
            pattern = {"include": [start]}
            rules.append({"order": _ORDER, "urlPattern": pattern, "processor": _PROCESSOR, "args": left_out})
    with whole_file(path, lambda start: start.startswith(_EXPORT)) as file:
        file.write(_EXPORT + json.dumps(rules, indent=2, sort_keys=True).encode().removeprefix(b"[") + b"\n")
    rest = len(sound) - len(rules)
    tell(f"Wrote {plural(len(rules), 'rule')} to {path}; {rest} cannot be expressed in its format.")


COMMAND = Subcommand(
    run,
    ("rules", "rules --host example.org", "rules --export rules.json"),
    (HOST, option("--export", metavar="FILE", help="write them for duplicate-url-discarder")),
)
