"""Saves the rules and traps of a crawl in its store; the next crawl begins with the rules at half their weight."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from dedup_middleware.economy.addresses import address_of
from dedup_middleware.economy.rules import Rule, Side, rule_id
from dedup_middleware.index.schema import RULES, rule_key
from dedup_middleware.urls import host_of, is_under

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dedup_middleware.economy.economy import Economy
    from dedup_middleware.stores import OpenStore

# A longer value was not written by us: two sides of the longest address.
_MAX_VALUE = 16_384


class Learned(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule, or a trap, as a store has it."""

    sides: list[tuple[str, list[str], list[tuple[str, str]]]] = []
    """Shape, what is left out, and what is renamed; empty for a trap."""
    support: int = 0
    against: int = 0
    against_url: str = ""
    trap: str = ""
    """The shape that has brought nothing."""
    is_off: bool = False
    """Whether a person has switched it off."""

    @property
    def rule(self) -> Rule:
        """The rule, without the texts and keys of the crawls that have learned it."""
        sides = tuple(Side(shape, frozenset(out), tuple(names)) for shape, out, names in self.sides)
        return Rule(
            sides, inherited=self.support, against=self.against, against_url=self.against_url, is_off=self.is_off
        )

    @classmethod
    def of(cls, rule: Rule, shown: Callable[[str], str]) -> Learned:
        """Return what a store is to have of *rule*; *shown* returns a URL without secrets."""
        sides = [(side.shape, sorted(side.left_out), [*side.renamed]) for side in rule.sides]
        return cls(sides, rule.support, rule.against, shown(rule.against_url), is_off=rule.is_off)

    def is_on(self, host: str) -> bool:
        """Return whether it is about *host*, or a subdomain, also where it is about another host, too."""
        shapes = [self.trap] if self.trap else [shape for shape, _, _ in self.sides]
        return any(is_under(host_of(f"http://{shape}"), [host]) for shape in shapes)

    @property
    def name(self) -> str:
        """The rule in words, or the trap."""
        return f"trap {self.trap}" if self.trap else self.rule.name

    @property
    def id(self) -> str:
        """A short name for the command line."""
        return rule_id(self.name)


def learned_in(store: OpenStore) -> Iterator[tuple[bytes, Learned]]:
    """Yield the keys and values of the rules and traps of *store*; a value that cannot be read is left out."""
    for key, value in store.scan(*RULES):
        with suppress(msgspec.MsgspecError, ValueError):
            learned = msgspec.msgpack.decode(value[: _MAX_VALUE + 1], type=Learned)
            if learned.sides or learned.trap:
                yield key, learned


def restore(economy: Economy, store: OpenStore) -> None:
    """Let *economy* begin with what *store* has learned in earlier crawls."""
    for _, learned in learned_in(store):
        if learned.trap:
            if learned.is_off:
                economy.values.lifted.add(learned.trap)
            continue
        rule = learned.rule
        rule.inherited //= 2
        economy.rules.add(rule)


def save(economy: Economy, store: OpenStore, shown: Callable[[str], str]) -> None:
    """Write the rules and traps of *economy* into *store*, in the place of those of earlier crawls.

    *shown* returns a URL as it may be written: without secrets.
    """
    found = [Learned.of(rule, shown) for rule in economy.rules.all() if rule.is_off or rule.holds]
    found += [Learned(trap=shape) for shape in economy.values.traps]
    off = {learned.name: learned for _, learned in learned_in(store) if learned.is_off}
    kept = {learned.name: learned for learned in found} | off
    puts = [(rule_key(learned.id), msgspec.msgpack.encode(learned)) for learned in kept.values()]
    stays = {key for key, _ in puts}
    store.write(puts, [key for key, _ in store.scan(*RULES) if key not in stays], sync=True)


def forget_host(store: OpenStore, host: str) -> None:
    """Delete the rules and traps of *host* and its subdomains."""
    store.write([], [key for key, learned in learned_in(store) if learned.is_on(host)], sync=True)


def rules_of_shape(store: OpenStore, url: str) -> list[str]:
    """Return the ids and names of the rules in *store* that may hold the request of *url* back."""
    address = address_of(url)
    rules = [learned.rule for _, learned in learned_in(store) if not learned.trap]
    return [f"{rule.id} {rule.name}" for rule in rules if rule.holds and address and rule.side(address.shape)]


def switch_off(store: OpenStore, id_: str) -> Learned | None:
    """Switch off the rule or trap with this id for all crawls to come; return it, ``None`` if it does not exist."""
    for key, learned in learned_in(store):
        if learned.id == id_:
            off = msgspec.structs.replace(learned, is_off=True)
            store.write([(key, msgspec.msgpack.encode(off))], sync=True)
            return off
    return None
