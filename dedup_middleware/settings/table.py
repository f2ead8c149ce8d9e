"""The settings, each written down once.

The tables of the README and of docs/settings.md are held to this one by a test. A new setting is a row here, a field of
:class:`~dedup_middleware.settings.config.Config` with its type, and a row in both tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from dedup_middleware.extraction import EXTRACTORS
from dedup_middleware.fingerprints import FINGERPRINTERS
from dedup_middleware.model import Action
from dedup_middleware.settings import kinds, quantities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.settings.kinds import Kind

PREFIX = "DEDUP_"
#: At one half or less, two pages that share nothing with each other could both be "the" original.
THRESHOLD = quantities.Share(above=0.5)


class ScopeSetting(str, Enum):
    """The values of DEDUP_SCOPE; see `Scope` for what it is resolved to."""

    AUTO = "auto"
    """``crawl`` where a feed is overwritten, else ``store``."""
    STORE = "store"
    CRAWL = "crawl"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    name: str
    text: str
    """What it does, in one sentence."""
    kind: Kind
    default: Any

    @property
    def field(self) -> str:
        """The name of its field in a `Config`."""
        return self.name.removeprefix(PREFIX).lower()

    def read(self, value: object) -> Any:
        """Return what *value* means, and ``None`` the default; :class:`ConfigError` names setting, value and remedy."""
        return self.kind.read(self.name, self.default if value is None else value)


_SETTINGS = (
    Setting("DEDUP_ENABLED", "False: no store is opened, nothing is checked", kinds.Boolean(), default=True),
    Setting("DEDUP_STORE", "where fingerprints are kept", kinds.StoreUri(), default=None),
    Setting(
        "DEDUP_STORE_MEMORY",
        "what caches and buffers of a store on disk take in memory",
        quantities.Size(4_000_000, may_be_none=False),
        default="128MB",
    ),
    Setting("DEDUP_LOG", "JSON Lines file of records, appended to", kinds.LogPath(), default=None),
    Setting(
        "DEDUP_DROPPED_SIZE",
        "room for dropped items in the store; the oldest go first",
        quantities.Size(100_000),
        default="200MB",
    ),
    Setting("DEDUP_DROPPED_AGE", "dropped items are removed after so many days", quantities.Days(), default=90),
    Setting("DEDUP_ACTION", "what is done with the items of a duplicate", kinds.Choice(Action), default="drop"),
    Setting(
        "DEDUP_THRESHOLD",
        "share of a page's non-boilerplate text that one original must hold for a duplicate",
        THRESHOLD,
        default=0.8,
    ),
    Setting(
        "DEDUP_PRIORITY_ADJUST",
        "added to the priority of requests that a duplicate yields",
        quantities.Whole(),
        default=-1000,
    ),
    Setting(
        "DEDUP_SCOPE",
        "compare with the pages of this crawl, or with all in the store",
        kinds.Choice(ScopeSetting),
        default="auto",
    ),
    Setting(
        "DEDUP_EXPIRE_AFTER",
        "days after which an original that was not fetched again drops no page",
        quantities.Days(),
        default=None,
    ),
    Setting(
        "DEDUP_PREFERRED",
        "pages that become the original, also where a copy of them came first",
        kinds.Preferred(),
        default=[],
    ),
    Setting("DEDUP_ITEM_FIELDS", "the fields of items that are compared", kinds.Names("text"), default=[]),
    Setting("DEDUP_FINGERPRINT", "what is kept of a text", kinds.FingerprintName(FINGERPRINTERS), default="clauses"),
    Setting("DEDUP_EXTRACTOR", "how the main text of a page is found", kinds.Name(EXTRACTORS), default="weighted-dom"),
    Setting("DEDUP_LOG_LEVEL", "level of the Dropped: line of a duplicate", kinds.Level(), default="INFO"),
    Setting("DEDUP_REDACT_QUERY", "write the values in a URL's query as *", kinds.Boolean(), default=False),
    Setting(
        "DEDUP_MAX_BYTES", "pages with a larger body are kept, not checked", quantities.Whole(1), default=10_000_000
    ),
    Setting(
        "DEDUP_MAX_MILLISECONDS",
        "pages that take more CPU time until they can be compared are kept, not checked",
        quantities.Whole(1),
        default=1000,
    ),
)
#: Name -> setting.
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _SETTINGS}
REPLACED: Mapping[str, str] = {
    "DEDUP_OUTLINK_PENALTY": "set DEDUP_PRIORITY_ADJUST, with a minus sign: -1000 for 1000",
    "DEDUP_LEASE": "set DEDUP_EXPIRE_AFTER",
    "DEDUP_SIMHASH_DISTANCE": "remove it; for SimHash, set DEDUP_FINGERPRINT to a published method (docs/methods.md)",
    "DEDUP_STORE_BUSY": "remove it; a crawl whose store is in use keeps all items",
    "DEDUP_COMMON_CLAUSE": "remove it; it is always 3",
    "DEDUP_MAX_NODES": "remove it; it is always 100000",
    "DEDUP_MAX_CLAUSES": "remove it; it is always 20000",
    "DEDUP_TEXT_LIMIT": "remove it; it is always 20000",
    "DEDUP_WAIT": "remove it; a duplicate always waits up to 2 seconds",
}
"""Former names -> what to do instead."""
DEFAULTS: Mapping[str, Any] = {setting.name: setting.default for setting in _SETTINGS}
