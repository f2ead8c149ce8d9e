"""Which published methods there are, and how one is chosen: by its name, with options or without.

``simhash`` is the method as its authors describe it; ``simhash:bits=128,distance=5`` has other values for two of its
options. Another package adds a method through an entry point of the group ``dedup_middleware.methods``.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from dedup_middleware.errors import ConfigError
from dedup_middleware.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dedup_middleware.fingerprints.literature.method import Method

_HERE = "dedup_middleware.fingerprints.literature"

#: By name, in the order of docs/methods.md.
METHODS = Registry(
    "dedup_middleware.methods",
    {
        "paragraphs": f"{_HERE}.paragraph_simhash:ParagraphSimHash",
        "long-sentences": f"{_HERE}.long_sentences:LongSentences",
        "shingles": f"{_HERE}.shingling:Shingles",
        "heintze": f"{_HERE}.shingling:Heintze",
        "bharat": f"{_HERE}.shingling:Bharat",
        "supershingles": f"{_HERE}.supershingles:SuperShingles",
        "fetterly": f"{_HERE}.supershingles:Fetterly",
        "i-match": f"{_HERE}.i_match:IMatch",
        "simhash": f"{_HERE}.charikar:Charikar",
        "e-simhash": f"{_HERE}.e_simhash:ESimHash",
        "p-simhash": f"{_HERE}.p_simhash:PSimHash",
        "top-words": f"{_HERE}.top_words:TopWords",
        "segments": f"{_HERE}.segments:Segments",
        "keywords": f"{_HERE}.keyword_digests:KeywordDigests",
        "random-projection": f"{_HERE}.random_projection:RandomProjection",
        "near-pages": f"{_HERE}.near_pages:NearPages",
        "idf-top": f"{_HERE}.idf_top:IdfTop",
        "punctuation": f"{_HERE}.punctuation:PunctuationNeighbours",
        "topic-distances": f"{_HERE}.topic_distances:TopicDistances",
        "length-classes": f"{_HERE}.length_classes:LengthClasses",
        "two-stage": f"{_HERE}.two_stage:TwoStage",
        "bloom": f"{_HERE}.bloom:BloomFilter",
        "vectors": f"{_HERE}.vector_space:WordVectors",
        "characters": f"{_HERE}.vector_space:CharacterVectors",
        "minhash": f"{_HERE}.minhash:MinHashLSH",
    },
)


def method(choice: str) -> Method:
    """Return the method of a *choice*, ``name`` or ``name:option=value,option=value``; else `ConfigError`."""
    name, _, rest = choice.partition(":")
    made: type[Method] = METHODS.load(name)
    defaults = {p.name: p.default for p in inspect.signature(made).parameters.values()}
    given: dict[str, Any] = {}
    for pair in filter(None, rest.split(",")):
        option, _, value = (part.strip() for part in pair.partition("="))
        if option not in defaults:
            known = ", ".join(defaults) or "none"
            raise ConfigError(f"the method {name!r} has no option {option!r}; it has {known}")
        given[option] = _read(name, option, value, defaults)
    return made(**given)


def _read(name: str, option: str, value: str, defaults: Mapping[str, Any]) -> Any:
    kind = type(defaults[option])
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return kind(value)
    except (ValueError, KeyError) as error:
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(kind, "a text")
        raise ConfigError(f"the method {name!r} takes {wanted} for {option}, not {value!r}") from error
