"""A fingerprint says what a text says, and nothing of how it is laid out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.text.clauses import clauses, weight

KEY = b"sixteen bytes ok"
fingerprint = ClauseFingerprinter(KEY)
PARAGRAPHS = st.lists(st.sampled_from([*story(1), *zh_story(1), "短。", "He said.", ""]), max_size=12)


@given(PARAGRAPHS)
def test_it_weighs_every_clause_once(paragraphs: list[str]) -> None:
    said = {clause for clause, _ in clauses("\n".join(paragraphs))}
    made = fingerprint(paragraphs)
    assert dict(made.weights) == {fingerprint.hash(clause): weight(clause) for clause in said}
    assert made.weight == sum(map(weight, said))
    assert all(len(clause_hash) == 6 for clause_hash in made.weights)


@given(PARAGRAPHS, st.randoms(use_true_random=False))
def test_order_and_repetition_of_paragraphs_do_not_matter(paragraphs: list[str], random: object) -> None:
    shuffled = [*paragraphs, *paragraphs[:2]]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = fingerprint(paragraphs), fingerprint(shuffled)
    assert (one.digest, dict(one.weights), dict(one.masked_hashes)) == (
        other.digest,
        dict(other.weights),
        dict(other.masked_hashes),
    )


def test_clauses_that_differ_in_digits_only_share_their_masked_hash() -> None:
    (monday,) = fingerprint(["the mill sold 12 tons of flour in 2023"]).masked_hashes.values()
    (tuesday,) = fingerprint(["the mill sold 7 tons of flour in 2024"]).masked_hashes.values()
    (elsewhere,) = fingerprint(["the port sold 12 tons of flour in 2023"]).masked_hashes.values()
    assert monday == tuesday != elsewhere
    assert len(monday) == 4
    assert not fingerprint(["the mill sold many tons of flour"]).masked_hashes


@given(st.lists(st.text()))
def test_any_text_has_a_fingerprint(paragraphs: list[str]) -> None:
    made = fingerprint(paragraphs)
    assert made.masked_hashes.keys() <= made.weights.keys()
    assert fingerprint([p + "\ud800" * 20 for p in paragraphs]).weight >= 0
