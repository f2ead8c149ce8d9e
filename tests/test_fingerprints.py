"""A fingerprint says what a text says, and nothing of how it is laid out."""

from hypothesis import given
from hypothesis import strategies as st
from prose import story, zh_story

from dedup_middleware.fingerprints import ClauseFingerprinter
from dedup_middleware.text.clauses import clauses, weight

KEY = b"sixteen bytes ok"
fingerprint = ClauseFingerprinter(KEY)
PARAGRAPHS = st.lists(st.sampled_from([*story(1), *zh_story(1), "短。", "He said.", ""]), max_size=12)


@given(PARAGRAPHS)
def test_it_weighs_every_clause_once(paragraphs):
    said = {clause for clause, _ in clauses("\n".join(paragraphs))}
    made = fingerprint(paragraphs)
    assert dict(made.weights) == {fingerprint.hash(clause): weight(clause) for clause in said}
    assert made.weight == sum(map(weight, said))
    assert all(len(clause_hash) == 6 for clause_hash in made.weights)


@given(PARAGRAPHS, st.randoms(use_true_random=False))
def test_order_and_repetition_of_paragraphs_do_not_matter(paragraphs, random):
    shuffled = [*paragraphs, *paragraphs[:2]]
    random.shuffle(shuffled)
    one, other = fingerprint(paragraphs), fingerprint(shuffled)
    assert (one.digest, dict(one.weights)) == (other.digest, dict(other.weights))
