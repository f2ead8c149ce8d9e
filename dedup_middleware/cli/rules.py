"""``scrapy dedup rules``: lists, exports and switches off what crawls have learned about addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dedup_middleware import bounded
from dedup_middleware.cli.call import add_host_option, whole_file
from dedup_middleware.cli.commands import Subcommand
from dedup_middleware.economy.rules import TO_BE_FINAL
from dedup_middleware.economy.stored import learned_in, switch_off
from dedup_middleware.economy.waiting import LEFT_OUT, is_list
from dedup_middleware.errors import NothingFoundError, UnreadableError
from dedup_middleware.index.shared import index_for_command
from dedup_middleware.records.log import host_named
from dedup_middleware.terminal import plural, tell
from dedup_middleware.text.clauses import one_line
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from dedup_middleware.cli.call import Call
    from dedup_middleware.economy.stored import Learned
    from dedup_middleware.settings import Config

_MAX_LINE = 2**16
# What duplicate-url-discarder reads; lower numbers are applied first there.
_ORDER, _PROCESSOR = 100, "queryRemoval"
# An empty line, which is nothing in JSON, marks a file of ours: the format has no place for a name.
_EXPORT = b"[\n\n"


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_host_option(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--off", metavar="ID", help="switch this rule or trap off for the crawls to come")
    what.add_argument("--left-out", action="store_true", help="list the URLs that the last crawl did not fetch")
    what.add_argument("--export", metavar="FILE", help="write the final rules for duplicate-url-discarder")


def run(call: Call) -> int | None:
    """Print the rules and traps, or what the options ask for."""
    opts, config = call.opts, call.config
    host = None if opts.host is None else host_named(opts.host)
    if opts.left_out:
        return _print_left_out(config, host, as_json=opts.json)
    with index_for_command(config.store, "rules") as (store, _):
        if opts.off is not None:
            learned = switch_off(store, opts.off)
            if learned is None:
                raise NothingFoundError(f"There is no rule {opts.off!r:.40}. `scrapy dedup rules` lists them.")
            print(f"Switched off: {one_line(learned.name)}")
            return None
        found = [learned for _, learned in learned_in(store) if host is None or learned.is_on(host)]
    found.sort(key=lambda learned: -learned.support)
    if opts.export is not None:
        _export(found, Path(opts.export))
    elif not found and not opts.json:
        print("No rules yet. A crawl with DEDUP_RULES other than off learns them.")
    for learned in found if opts.export is None else ():
        print(json.dumps(_as_dict(learned)) if opts.json else _text(learned))
    return None


def _state(learned: Learned) -> str:
    if learned.is_off:
        return "off"
    if learned.trap:
        return "trap"
    return "final" if learned.support >= TO_BE_FINAL and not learned.against else "holds"


def _as_dict(learned: Learned) -> dict[str, Any]:
    counts = {"texts": learned.support, "against": learned.against, "against_url": learned.against_url}
    return {"id": learned.id, "state": _state(learned), "name": learned.name} | counts


def _text(learned: Learned) -> str:
    """Return a rule for a person: a line of counts, and below it the rule."""
    counts = "" if learned.trap else f"  {plural(learned.support, 'text')}, {learned.against} against"
    against = f"\n    against: {one_line(learned.against_url)}" if learned.against_url else ""
    return f"{learned.id}  {_state(learned)}{counts}\n    {one_line(learned.name)}{against}"


def _export(found: list[Learned], path: Path) -> None:
    """Write those rules of *found* that duplicate-url-discarder can apply; name how many others there are."""
    rules = []
    final = [learned for learned in found if _state(learned) == "final"]
    for learned in final:
        (shape, left_out, _), *others = learned.sides
        # It matches the start of a path, so a variable may only be at the end of it.
        if not others and "*" not in shape.removesuffix("*") and not any(n[:1] in ";0123456789" for n in left_out):
            pattern = {"include": [shape.removesuffix("*")]}
            rules.append({"order": _ORDER, "urlPattern": pattern, "processor": _PROCESSOR, "args": left_out})
    with whole_file(path, lambda start: start.startswith(_EXPORT)) as file:
        file.write(_EXPORT + json.dumps(rules, indent=2, sort_keys=True).encode().removeprefix(b"[") + b"\n")
    rest = len(final) - len(rules)
    tell(f"Wrote {plural(len(rules), 'rule')} to {path}; {rest} cannot be expressed in its format.")


def _print_left_out(config: Config, host: str | None, *, as_json: bool) -> int | None:
    path = None if config.log is None else config.log.with_name(LEFT_OUT)
    if path is None or not path.exists():
        raise NothingFoundError(
            "No URL was left out: only a crawl with DEDUP_RULES=on that ends by itself leaves some."
        )
    for fields in _lines(path):
        if host is None or is_under(host_of(fields["left_out"]), [host]):
            print(json.dumps(fields) if as_json else one_line(fields["left_out"]))
    return None


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open("rb") as file:
        for line in bounded.lines(file, _MAX_LINE):
            try:
                fields = bounded.loads(line or b"")
            except UnreadableError:
                continue
            if is_list(line or b"") and isinstance(fields, dict) and isinstance(fields["left_out"], str):
                yield fields


COMMANDS = {
    "rules": Subcommand(
        run,
        ("rules", "rules --host example.org", "rules --off 1a2b3c4d", "rules --left-out"),
        _add_options,
    )
}
