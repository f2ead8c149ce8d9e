"""The file ``DEDUP`` in a folder of ours: what this is, whose database lies in it, whether its creation was finished.

The only reader and writer of markers.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from dedup_middleware import permissions
from dedup_middleware.stores.layout import ID_BYTES

if TYPE_CHECKING:
    from pathlib import Path

NAME = "DEDUP"
DRAFT = "DEDUP.tmp"
LAYOUT = 2
_KIND = re.compile(r"dedup-middleware ([a-z]+) store")


class Marker(NamedTuple):
    """What a marker says. Later layouts keep the first field, so that an older plugin can say "newer"."""

    layout: int
    finished: bool
    store_id: bytes


def scheme_of(folder: Path) -> str | None:
    """Return the scheme of the store in *folder*; ``None`` if it does not bear our marker, of any layout."""
    said = _KIND.fullmatch(str(_fields(folder).get("kind")))
    return None if said is None else said[1]


def is_ours(folder: Path, scheme: str) -> bool:
    """Tell whether *folder* bears our marker for this *scheme*, of any layout, sensible otherwise or not."""
    return scheme_of(folder) == scheme


def read(folder: Path, scheme: str) -> Marker:
    """Return the marker of *folder*, which is ours; ``ValueError`` if it says what nobody has written.

    A flipped bit must not turn "finished" into "unfinished": that would allow to create a database anew.
    """
    fields = _fields(folder) if is_ours(folder, scheme) else {}
    layout, finished, store_id = (fields.get(name) for name in ("layout", "finished", "id"))
    if type(layout) is int and layout != LAYOUT:
        return Marker(layout, finished=True, store_id=b"")
    if type(layout) is int and isinstance(finished, bool) and isinstance(store_id, str):
        marker = Marker(layout, finished, bytes.fromhex(store_id))
        if len(marker.store_id) == ID_BYTES:
            return marker
    raise ValueError(f"its {NAME} cannot be read")


def write(folder: Path, scheme: str, *, store_id: bytes, finished: bool) -> None:
    """Put the marker on the medium; the file has the old one or the new one at any time."""
    draft = folder / DRAFT
    permissions.make_file(draft)
    with draft.open("w", encoding="ascii") as file:
        kind = f"dedup-middleware {scheme} store"
        json.dump({"kind": kind, "layout": LAYOUT, "finished": finished, "id": store_id.hex()}, file)
        file.flush()
        # Otherwise a power failure can leave the new name with no content.
        os.fsync(file.fileno())
    draft.replace(folder / NAME)


def _fields(folder: Path) -> dict[str, object]:
    try:
        with (folder / NAME).open("rb") as file:
            # A stranger's file of this name may be of any size.
            fields = json.loads(file.read(1024))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
