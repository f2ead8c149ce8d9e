"""Pages of a store <-> lines of JSON, by which a store is moved, merged and compared.

The first line, of a store: its scheme, its hashing key (who has it can craft pages that collide) and the next place in
line. Then a line a page, oldest first: what a person reads (address, title, time, crawl, owner, score, text), and what
the store knows of it. Then a line for each text that is known to be a template, and each override. What a file says
is hostile until it has been read here. Dropped items stay where they are.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import UnreadableError
from dedup_middleware.index import codec, page_codec
from dedup_middleware.index.overrides import Override
from dedup_middleware.stores.layout import SCHEMA_VERSION, Header

if TYPE_CHECKING:
    from dedup_middleware.model import StoredPage

FORMAT = "dedup-middleware pages"
VERSION = 1

_MAX_PLACE = 2**40 - 1
_TEMPLATE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Origin:
    """The store that an export was made of."""

    header: Header
    place: int
    """The next page's, in line."""
    learned: bytes = b""
    """What a published method has learned, if one decides there."""

    def to_line(self) -> str:
        """Return it as one line, without its line end."""
        header = json.loads(self.header.encode())
        said = {"format": FORMAT, "version": VERSION, **header, "place": self.place}
        return _line(said | {"learned": _base64(self.learned)})

    @classmethod
    def read(cls, said: dict[str, Any]) -> Origin:
        """Return what :meth:`to_line` made *said* of; `UnreadableError`."""
        if said.get("version") != VERSION:
            raise UnreadableError(f"its version is {said.get('version')!r:.20}, and this release reads {VERSION}")
        try:
            header = Header.decode(json.dumps(said | {"schema": SCHEMA_VERSION}).encode())
            return cls(header, _place(said["place"]), _bytes(said.get("learned")))
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableError(f"its first line cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Exported:
    """A page, with all that a store knows of it but its request."""

    page: StoredPage
    text: tuple[str, ...] | None
    """Its paragraphs, as far as they are kept."""
    said: tuple[str, ...] | None
    """Likewise what its items said, where that is not its own text."""
    body_digest: bytes = b""
    unlisted: frozenset[bytes] = frozenset()
    """Keys of posting lists that do not lead to it, though it has what they stand for: boilerplate, or borrowed."""
    suspect_of: tuple[bytes, ...] = ()
    """Of templates that it may fill in."""
    names: tuple[bytes, ...] = ()
    """The identities of what it names as its story's own page."""
    made: bytes = b""
    """What a published method has made of it."""

    def to_line(self, owner_url: str | None) -> str:
        """Return it as one line, without its line end; *owner_url* is for whoever reads it."""
        page = self.page
        return _line(
            {
                "url": page.url,
                "title": "" if page.features is None else page.features.title,
                "time": page.time,
                "run": page.run,
                "owner_url": owner_url,
                "score": page.score if page.owner is not None else None,
                "text": self.text,
                "said": self.said,
                "number": page.number,
                "page": _base64(page_codec.encode_page(page)),
                "body_digest": self.body_digest.hex(),
                "unlisted": [key.hex() for key in sorted(self.unlisted)],
                "suspect_of": [template.hex() for template in self.suspect_of],
                "names": [identity.hex() for identity in self.names],
                "made": _base64(self.made),
            }
        )

    @classmethod
    def read(cls, said: dict[str, Any], hash_bytes: int) -> Exported:
        """Return what :meth:`to_line` made *said* of; `UnreadableError` if a store cannot have it."""
        try:
            return cls(
                _stored(said, hash_bytes),
                _texts(said.get("text")),
                _texts(said.get("said")),
                bytes.fromhex(said.get("body_digest", "")),
                frozenset(map(bytes.fromhex, said.get("unlisted", ()))),
                tuple(map(template_of, said.get("suspect_of", ()))),
                tuple(map(_identity, said.get("names", ()))),
                _bytes(said.get("made")),
            )
        except UnreadableError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableError(f"a page cannot be read: {error}") from error


def _stored(said: dict[str, Any], hash_bytes: int) -> StoredPage:
    page = page_codec.decode_page(said["number"], _bytes(said["page"]))
    _place(codec.place_of(page.number))
    if page.url != said.get("url"):
        raise ValueError("its address is not the one that it was stored under")
    if datetime.fromisoformat(page.time).utcoffset() is None or not 0 <= page.score <= 1:
        raise ValueError("it has no time, or a score that is none")
    if not page.identities or any(len(h) != hash_bytes for h in page.hashes):
        raise ValueError("it is not of the store that the first line names")
    return page


def _place(said: object) -> int:
    if type(said) is not int or not 1 <= said <= _MAX_PLACE:
        raise ValueError("it has no place in line")
    return said


def template_line(template: bytes) -> str:
    """Return the line, without its end, that says of a text that it is a template."""
    return _line({"template": template.hex()})


def template_of(said: object) -> bytes:
    """Return the 8 bytes of a template that *said* names; ``ValueError``."""
    template = bytes.fromhex(said) if isinstance(said, str) else b""
    if len(template) != _TEMPLATE_BYTES:
        raise ValueError("a template cannot be read")
    return template


def override_line(override: Override) -> str:
    """Return the line, without its end, of an override."""
    return _line({"override": json.loads(override.encode()[1])})


def override_of(said: object) -> Override:
    """Return the override that *said* is; ``ValueError``."""
    override = Override.decode(json.dumps(said).encode())
    if not all(len(i) == codec.IDENTITY_BYTES for i in (*override.identities, *override.original_identities)):
        raise UnreadableError("an override cannot be read")
    return override


def _identity(said: object) -> bytes:
    identity = bytes.fromhex(said) if isinstance(said, str) else b""
    if len(identity) != codec.IDENTITY_BYTES:
        raise ValueError("an identity cannot be read")
    return identity


def _line(said: dict[str, Any]) -> str:
    """Return the fields that say anything, in this order, as one line of ASCII."""
    return json.dumps({name: value for name, value in said.items() if value not in (None, "", [], ())})


def _base64(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _bytes(said: object) -> bytes:
    if said is None:
        return b""
    if not isinstance(said, str):
        raise ValueError("what should be base64 is no text")  # noqa: TRY004 - to callers, garbage is one kind of error
    return b64decode(said, validate=True)


def _texts(said: object) -> tuple[str, ...] | None:
    if said is None:
        return None
    if not isinstance(said, list) or not all(isinstance(text, str) for text in said):
        raise ValueError("its text is no list of paragraphs")
    return tuple(said)
