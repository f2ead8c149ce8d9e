"""A notice, or comments, longer than the text of their page prove nothing of that text."""

import pytest
from prose import story

from dedup_middleware import Deduplicator

TITLE = "Contact and opening hours"
NOTICE = "".join(f"<div><p>{paragraph}</p></div>" for paragraph in story(50, 8))


@pytest.mark.parametrize(
    "element", ["noscript", "footer", "div class='comments'", "div class='cookie-banner'"], ids=lambda each: each[-8:]
)
@pytest.mark.parametrize("item", [None, {"title": TITLE}], ids=["page", "title"])
@pytest.mark.parametrize("host", ["one.example", "two.example"])
def test_a_notice_that_outweighs_a_text_makes_no_copy_of_it(host, item, element):
    shared = f"<{element}>{NOTICE}</{element.split(maxsplit=1)[0]}>"
    first, second = (
        f"<title>{TITLE}</title><h1>{TITLE}</h1><article><p>{story(n, 1)[0]}</p></article>{shared}" for n in (1, 2)
    )
    with Deduplicator("memory:") as dedup:
        dedup.add("http://one.example/contact", first, item=item)
        assert not dedup.check(f"http://{host}/contact/2", second, item=item).is_duplicate
        assert dedup.check("http://one.example/contact?sid=2", first, item=item).is_duplicate
