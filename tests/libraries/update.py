"""Updates the JavaScript libraries of the report and of its tests: ``python update.py``, with npm."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).parent
_PACKAGE = _TESTS.parents[1] / "dedup_middleware" / "report" / "libraries"


@dataclass(frozen=True, slots=True)
class Library:
    """A release, and where each of its files goes."""

    release: str
    sha512: str
    """Of its archive, in base64, as the registry and every lock file have it."""
    files: dict[str, Path]


LIBRARIES = (
    Library(
        "uplot@1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        {
            "dist/uPlot.iife.min.js": _PACKAGE / "uplot.js",
            "dist/uPlot.min.css": _PACKAGE / "uplot.css",
            "LICENSE": _PACKAGE / "uplot.LICENSE",
        },
    ),
    Library(
        "@tanstack/table-core@8.21.3",
        "ldZXEhOBb8Is7xLs01fR3YEc3DERiz5silj8tnGkFZytt1abEvl/GhUmCE0PMLaMPTa3Jk4HbKmRlHmu+gCftg==",
        {
            "build/umd/index.production.js": _PACKAGE / "table-core.js",
            "LICENSE": _PACKAGE / "table-core.LICENSE",
        },
    ),
    # Finds accessibility faults in the tests; no report contains it.
    Library(
        "axe-core@4.14.1",
        "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
        {"axe.min.js": _TESTS / "axe.js", "LICENSE": _TESTS / "axe.LICENSE"},
    ),
)


def main() -> None:
    """Write every file of every library; end at the first archive with another checksum."""
    for library in LIBRARIES:
        with tempfile.TemporaryDirectory() as folder:
            done = ["npm", "pack", "--silent", library.release]
            subprocess.run(done, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            (archive,) = Path(folder).iterdir()
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if digest != library.sha512:
                sys.exit(f"{library.release} has another checksum: sha512-{digest}")
            write_files(library, archive)


def write_files(library: Library, archive: Path) -> None:
    """Write the files of *library* from its *archive* to their places, without the names of source maps."""
    with tarfile.open(archive) as tar:
        for name, place in library.files.items():
            found = tar.extractfile(f"package/{name}")
            assert found is not None
            lines = found.read().replace(b"\r\n", b"\n").split(b"\n")
            kept = [line for line in lines if not line.startswith(b"//# sourceMappingURL=")]
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(b"\n".join(kept).rstrip() + b"\n")


if __name__ == "__main__":
    main()
