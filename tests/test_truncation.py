"""A page of unknown length is incomplete where its markup ends too early."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prose import article, blog, story

from dedup_middleware.extraction.decoding import is_cut_off

SCRIPT = "<script>print.write('<html><body></body></html>')</script>"
COMPLETE = {
    "a page": article("A", story(1)),
    "upper case": "<HTML><BODY><P>Text</BODY></HTML>",
    "only one end tag": "<html><body><p>Text</body>",
    "a counter behind the page": "<html><body><p>Text</body></html><script>count(",
    "the time behind the page": "<html><body><p>Text</body></html>\n<!-- 3 ms",
    "a start tag for each browser": "<!--[if IE 8]><html class='ie'><![endif]--><!--[if gt IE 8]><!--><html>"
    "<!--<![endif]--><body><p>Text</body></html>",
    "a script that writes a page": f"<html><body>{SCRIPT}<p>Text</body></html>",
    "a fragment": "<!DOCTYPE html><title>A</title><p>Text</p>\n",
    "a fragment with a script at its end": "<p>Text</p><script>count()</script >",
    "a fragment with a comment at its end": "<p>Text</p><!-- 3 ms -->",
}
CUT_OFF = {
    "nothing": "",
    "inside a text": "<html><body><p>Te",
    "inside a tag": '<html><body><p>Text</p><p class="x',
    "inside the end tag": "<html><body><p>Text</p></bod",
    "between two tags": "<html><body><p>Text</p>",
    "after a script that writes a page": f"<html><body>{SCRIPT}<p>Text</p>",
    "inside such a script": f"<html><body><p>Text</p>{SCRIPT.removesuffix('</script>')}",
    "inside a comment": "<html><body><p>Text</p><!-- </body></html>",
    "a second page": "<html><body><p>Text</body></html><html><body><p>Text</p>",
    "a fragment inside a text": "<title>A</title><p>Te",
    "a fragment inside a tag": "<title>A</title><p>Text</p><p class='x",
    "a fragment inside a script": "<p>Text</p><script>if (a > b) {}",
    "a fragment inside a comment": "<p>Text</p><!-- <b>",
}


@pytest.mark.parametrize("name", COMPLETE)
def test_a_complete_page_is_not_cut_off(name):
    assert not is_cut_off(COMPLETE[name])


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_page_that_ends_early_is_cut_off(name):
    assert is_cut_off(CUT_OFF[name])


@given(st.sampled_from([article("A", story(1)), blog("B", story(1))]), st.floats(0, 1))
def test_a_page_is_cut_off_wherever_it_ends_before_its_end_tag(page, share):
    begin, end = page.index("<body>"), page.index("</body>")
    assert is_cut_off(page[: begin + int(share * (end - begin))])
