"""The evidence is what the verdict counted, in the words of the page."""

from hypothesis import given
from hypothesis import strategies as st
from library import fingerprint, page_of
from prose import story, zh_story

from dedup_middleware.common.budget import UNLIMITED
from dedup_middleware.text.clauses import Sentence, clauses, marked_sentences, repeated_sentences

PARAGRAPHS = st.lists(st.sampled_from([*story(1), *zh_story(1), "短。", "He said. Go!", ""]) | st.text(), max_size=8)


def held_by(paragraphs):
    return set(fingerprint(paragraphs).weights)


def test_only_what_the_original_says_is_evidence_and_it_is_quoted_as_the_page_wrote_it():
    original = ["the harbour council has voted to rebuild the store, and no one had asked for it at all"]
    page = [
        "“The  HARBOUR council has voted to rebuild the store”. Some others paid for the lime trees. OK.",
        "And no one had asked for it at all, but the mill owners went on to complain in court for years!",
    ]
    marked = list(marked_sentences(page, held_by(original), fingerprint.hash))
    assert [sentence.text for sentence in marked if sentence.repeated] == [
        "“The  HARBOUR council has voted to rebuild the store”."
    ]
    assert marked[1] == Sentence("Some others paid for the lime trees.", 0.0)
    assert marked[2] == Sentence("OK.", None)
    assert 0 < marked[3].share < 0.5


@given(PARAGRAPHS, PARAGRAPHS)
def test_the_shares_of_the_sentences_add_up_to_the_cover_of_the_text(page, original):
    held = held_by(original)
    made = fingerprint(page)
    telling = {h for h, weight in made.weights.items() if weight}
    covered = {h for h in telling if h in held}
    marked = list(marked_sentences(page, held, fingerprint.hash))
    assert all(sentence.share is None or 0 <= sentence.share <= 1 for sentence in marked)
    assert any(sentence.share for sentence in marked) == bool(covered)
    assert any(sentence.share is not None for sentence in marked) == bool(telling)
    said = {fingerprint.hash(c) for sentence in marked if sentence.share for c, _ in clauses(sentence.text)}
    assert covered <= said
    repeated = repeated_sentences(page_of("p", page), held, fingerprint.hash, UNLIMITED)
    assert [s.text for s in marked if s.repeated] == list(repeated)
