"""Lists the engines of stores on disk: the only place that names them, besides the module of each."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = "memory:"
SERVERS = ("redis", "rediss")


@dataclass(frozen=True)
class Engine:
    """What is known of an engine before the module of its name is imported, whose ``ENGINE`` is its class."""

    library: str
    """The module that it needs."""
    memory: int
    """Bytes for its caches and buffers. More makes no page faster: "Memory" in docs/benchmarks/measurements.md."""
    is_folder: bool = True
    """Whether a store is a folder with our marker, and not one file that several processes may share."""


#: Scheme -> engine, the best for a crawl first; Python itself has the last.
ENGINES = {
    "leveldb": Engine("plyvel", 32 * 2**20),
    "rocksdb": Engine("rocksdict", 64 * 2**20),
    "sqlite": Engine("sqlite3", 128 * 2**20, is_folder=False),
}
LAST_RESORT = next(reversed(ENGINES))
#: The libraries that must be installed.
LIBRARIES = [engine.library for scheme, engine in ENGINES.items() if scheme != LAST_RESORT]


def forms() -> list[str]:
    """Return the forms of the URIs of stores on disk."""
    private = [f"{scheme}:PATH" for scheme in ENGINES]
    return private + [f"{scheme}:PATH?shared=1" for scheme, engine in ENGINES.items() if not engine.is_folder]
