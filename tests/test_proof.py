"""A copy is proved, not presumed: what differs between two pages of one site, or of two, and what comes of each.

The rows are kinds of pages that people have reported as lost, each with pages of its own making.
"""

from datetime import datetime, timezone

import pytest
from library import verdicts
from prose import story, zh_story

from dedup_middleware import Deduplicator
from dedup_middleware.checks import edits
from dedup_middleware.text.addresses import is_same_address
from dedup_middleware.text.words import without_numbering

NAV = "<nav><a href='/'>Home</a> <a href='/news'>News</a> <a href='/about'>About</a></nav>"
TITLE = "The ferry to the outer islands"


def page(body, title=TITLE, *, text=None, head=""):
    """Return a page with a menu, a text, and *body* above it."""
    paragraphs = "".join(f"<p>{each}</p>" for each in (story(1) if text is None else text))
    start = f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{NAV}<h1>{title}</h1>"
    return f"{start}<main>{body}{paragraphs}</main><footer><p>Printed in the harbour.</p></footer></body></html>"


def assert_kept(*pages):
    """Assert that all *pages* are kept, in both orders, with an item that has title and text, and without."""
    for crawled in (pages, pages[::-1]):
        assert "duplicate" not in verdicts(*crawled)
        with_items = [(url, html, item[0] if item else {"title": TITLE}) for url, html, *item in crawled]
        assert "duplicate" not in verdicts(*with_items)


# --- one site, another address: everything must be equal

ROWS = "<table>{}</table>"
DIFFERENT = {
    "a picture": ("<img src=/img/1.png alt='A gull'>", "<img src=/img/2.png alt='The keeper'>"),
    "a file": ("<p><a href=/files/births.csv>Download</a></p>", "<p><a href=/files/deaths.csv>Download</a></p>"),
    "a film": ("<video src=/a.mp4></video>", "<video src=/b.mp4></video>"),
    "a formula": ("<math><mn>7</mn><mi>x</mi></math>", "<math><mn>9</mn><mi>x</mi></math>"),
    "a drawn text": ("<svg><text>North</text></svg>", "<svg><text>South</text></svg>"),
    "a value in a form": ("<form><input value='Mill Ltd'></form>", "<form><input value='Boats Ltd'></form>"),
    "a chosen box": ("<input type=checkbox checked> Passed", "<input type=checkbox> Passed"),
    "a chosen option": (
        "<select><option selected>Red<option>Blue</select>",
        "<select><option>Red<option selected>Blue</select>",
    ),
    "an icon": ("<p>Sauna <i class=icon-yes></i></p>", "<p>Sauna <i class=icon-no></i></p>"),
    "a text of a style sheet": ("<span data-price='180 Kc'></span>", "<span data-price='240 Kc'></span>"),
    "a cell": (ROWS.format("<tr><td>Shower<td>yes"), ROWS.format("<tr><td>Shower<td>no")),
    "where a mark stands": (
        ROWS.format("<tr><td>Bath<td><i class=ok></i><tr><td>Balcony<td>"),
        ROWS.format("<tr><td>Bath<td><tr><td>Balcony<td><i class=ok></i>"),
    ),
    "the order of rows": ("<ol><li>The River<li>The Herons</ol>", "<ol><li>The Herons<li>The River</ol>"),
    "a price like a year": ("<div>$1,999</div>", "<div>$2,049</div>"),
    "a number of days": ("<dl><dt>Duration<dd>7 days</dl>", "<dl><dt>Duration<dd>14 days</dl>"),
    "a place": ("<p>Old Mill</p><p>Mill Lane</p>", "<p>Town Hall</p><p>Market Square</p>"),
    "a line of a list": ("<ul><li>Night shift<li>Full time</ul>", "<ul><li>Day shift<li>Part time</ul>"),
    "a score": ("<p>25:23</p>", "<p>21:25</p>"),
    "a unit": ("<p>It sends with 5 mW.</p>", "<p>It sends with 5 MW.</p>"),
    "a folded answer": (
        "<div class=panel hidden><p>Nothing in the first year.</p></div>",
        "<div class=panel hidden><p>The same fee for all, from the first month on.</p></div>",
    ),
    "a speaker": ("<p><b>Mr Holt:</b> It was signed.</p>", "<p><b>Ms Vane:</b> It was signed.</p>"),
    "where digits are divided": ("<p>Won 1-10 at home.</p>", "<p>Won 11-0 at home.</p>"),
    "a raised digit": ("<p>It costs 99<sup>1</sup> euros.</p>", "<p>It costs 991 euros.</p>"),
    "a fraction": ("<p>Take ½ tablet a day.</p>", "<p>Take 12 tablet a day.</p>"),
    "a struck word": ("<p>The pier is <del>not</del> open.</p>", "<p>The pier is not open.</p>"),
    "a hyphen": ("<p>He will re-sign today.</p>", "<p>He will resign today.</p>"),
    "a comma": ("<p>Pardon impossible, to be sent away.</p>", "<p>Pardon, impossible to be sent away.</p>"),
    "a capital": ("<p>They asked the US to help us.</p>", "<p>They asked the us to help US.</p>"),
    "code": ("<pre>(a + b) * c</pre>", "<pre>a + (b * c)</pre>"),
    "a picture without a name": ("<img src='/image?id=1'>", "<img src='/image?id=2'>"),
    "a source of a film": ("<video><source src=/a.mp4></video>", "<video><source src=/b.mp4></video>"),
    "code of one character": ("<pre>if a == b:</pre>", "<pre>if a != b:</pre>"),
    "a sign of code": ("<pre>if a &lt; b:</pre>", "<pre>if a &gt; b:</pre>"),
    "who did it": ("<p>Ann beat Bob by two.</p>", "<p>Bob beat Ann by two.</p>"),
    "a serial number": ("<aside>Serial number 4410087</aside>", "<aside>Serial number 4410093</aside>"),
    "a price in Chinese": ("<aside>价格：128元</aside>", "<aside>价格：199元</aside>"),
    "a symbol": ("<aside>Waterproof: ✓</aside>", "<aside>Waterproof: ✗</aside>"),
    "a sign": ("<p>The index changed by +5% today.</p>", "<p>The index changed by -5% today.</p>"),
    "a currency": ("<p>It is sold for $40 in all shops.</p>", "<p>It is sold for €40 in all shops.</p>"),
    "a decimal comma": ("<p>Take 15 mg before each meal.</p>", "<p>Take 1,5 mg before each meal.</p>"),
    "whose value it is": (
        "<p>Ann Orr</p><p>guilty</p><p>Bo Finn</p><p>innocent</p>",
        "<p>Ann Orr</p><p>innocent</p><p>Bo Finn</p><p>guilty</p>",
    ),
    "the data of a script": tuple(
        f'<script type="application/ld+json">{{"offers": [{{"price": "{price}"}}]}}</script>' for price in (120, 130)
    ),
    "a price in a script": tuple(f'<script type="application/json">{{"price": {n}}}</script>' for n in (19.9, 24.9)),
    "a word before a sentence": ("<p>A singing evening.</p>", "<p>CANCELLED - A singing evening.</p>"),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_on_one_site_pages_of_two_addresses_differ_by_anything(one, other):
    assert_kept(("http://one.example/p/1", page(one)), ("http://one.example/p/2", page(other)))


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_on_one_site_equal_content_is_a_copy_at_any_address(one, other):
    assert verdicts(("http://one.example/p/1", page(one)), ("http://one.example/q/2", page(one)))[1] == "duplicate"
    assert verdicts(("http://one.example/p/1", page(other)), ("http://one.example/q/2", page(other)))[1] == "duplicate"


DATES = [
    ("12 March", "30 March"),
    ("12 March 2025", "12 March 2026"),
    ("6月3日", "7月28日"),
    ("2025年6月3日", "2026年9月8日"),
    ("1.2 million", "12 million"),
]


@pytest.mark.parametrize(("one", "other"), DATES, ids=[one for one, _ in DATES])
def test_across_sites_another_date_or_number_in_a_sentence_is_another_text(one, other):
    text = zh_story(1) if "月" in one else story(1)
    hearing = (
        "听证会将于{}在市政厅举行，迟到者不得入场，请相互转告。"
        if "月" in one
        else "The hearing of {} begins in the hall."
    )
    pages = [page("", text=[*text[:2], hearing.format(each), *text[2:]]) for each in (one, other)]
    assert_kept(("http://one.example/p/1", pages[0]), ("http://two.example/story", pages[1]))
    assert verdicts(("http://one.example/p/1", pages[0]), ("http://two.example/s", pages[0]))[1] == "duplicate"


def test_a_title_in_another_order_is_another_one():
    titles = ("Trains from Aachen to Brussels", "Trains from Brussels to Aachen")
    assert_kept(*[(f"http://rail.example/{n}", page("", title)) for n, title in enumerate(titles)])


@pytest.mark.parametrize("label", ["<nav><a href=/leeds>{}</a></nav>", "<footer><p>{}</p></footer>"])
def test_what_the_frame_calls_a_page_counts_if_its_url_calls_it_so(label):
    leeds, york = (page("").replace("<footer>", label.format(name) + "<footer>") for name in ("Leeds", "York"))
    assert_kept(("http://one.example/leeds/hours", leeds), ("http://one.example/york/hours", york))


def test_subdomains_are_one_site():
    city = "<p>Veterinary clinic {}</p><p>{}</p>"
    assert_kept(
        ("http://bath.pets.example/", page(city.format("Bath", "Mill Lane"))),
        ("http://york.pets.example/", page(city.format("York", "Castle Street"))),
    )


# --- one site, one address: the content adds nothing


def test_a_parameter_and_another_frame_make_no_other_page():
    counted = "<aside>Read by {} people</aside><div class=comments><p>Nice, said Ann.</p></div>"
    first, second = (page("") + counted.format(number) for number in (7, 1209))
    assert verdicts(("http://one.example/p/1", first), ("http://one.example/p/1?sid=5f", second))[1] == "duplicate"


@pytest.mark.parametrize(
    ("url", "other", "is_same"),
    [
        ("http://a.example/s/5?sid=9", "http://a.example/s/5", True),
        ("http://a.example/s/5?id=9", "http://a.example/s/5?id=8", False),
        ("http://a.example/s/5/print", "http://a.example/s/5", True),
        ("http://a.example/print/5/", "http://a.example/story/5-the-ferry/", True),
        ("http://a.example/print/6/", "http://a.example/story/5-the-ferry/", False),
        ("http://m.a.example/s/5", "http://www.a.example/s/5", True),
        ("http://a.example/v2/guide", "http://a.example/latest/guide", True),
        ("http://a.example/index.php?title=Cams&printable=yes", "http://a.example/index.php/Cams", True),
        ("http://a.example/print/tram", "http://a.example/2025/03/tram?sid=5", True),
        ("http://a.example/print/tram", "http://a.example/article.php?id=tram", True),
        ("http://a.example/leeds", "http://a.example/york", False),
        ("http://a.example/lighthouse-print", "http://a.example/lighthouse", False),
    ],
)
def test_two_urls_of_one_thing(url, other, *, is_same):
    assert is_same_address(url, other) == is_same_address(other, url) == is_same


@pytest.mark.parametrize(("others", "verdict"), [(2, "related"), (3, "duplicate")])
def test_a_short_text_at_two_addresses_is_one_once_the_site_is_known(others, verdict):
    known = [(f"http://one.example/{n}", page("", f"Story {n}", text=story(n))) for n in range(5, 5 + others - 1)]
    notice = page("", "A notice", text=[story(4)[0], story(4)[1][:60]])
    pages = [*known, ("http://one.example/a/notice", notice), ("http://one.example/b/notice", notice)]
    assert verdicts(*pages)[-1] == verdict


# --- two sites: nothing that carries meaning is replaced


def across(first, second):
    """Return the verdict on a page of another site with the HTML *second* after *first*."""
    return verdicts(("http://one.example/a", first), ("http://two.example/b", second))[1]


SLOTS = [
    ("lot A", "lot B"),
    ("part II", "part III"),
    ("lot 4", "lot 5"),
    ("the spring round", "the autumn round"),
    ("Aurora", "Joliet"),
    ("2023", "2024"),
    ("grade A+", "grade A"),
    ("with pets", "without pets"),
    ("第一批", "第二批"),
]


@pytest.mark.parametrize(("one", "other"), SLOTS)
def test_a_title_with_another_value_is_another_one(one, other):
    assert across(page("", f"Form of the programme ({one})"), page("", f"Form of the programme ({other})")) == "related"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ferry returns", "Report: Ferry returns"),
        ("Ferry returns", "Ferry returns | The Courier"),
        ("如何测试洗牌", "【转】如何测试洗牌"),
    ],
)
def test_an_editors_title_is_none(one, other):
    assert across(page("", one), page("", other)) == "duplicate"


def under_one_heading(place, head=""):
    """Return a page whose title has a *place* beside its heading, and an item with both title and text."""
    named = "Registered nurse for the night shift in a small hospital"
    html = page("", f"{named} - {place}", head=head).replace(f"<h1>{named} - {place}", f"<h1>{named}")
    return html, {"title": f"{named} - {place}", "text": " ".join(story(1))}


@pytest.mark.parametrize(
    ("one", "other"), [("Leeds", "York"), ("Ref. 4711", "Ref. 4712"), ("31,000 a year", "38,000 a year")]
)
def test_what_a_title_has_beside_the_heading_is_not_the_sites_for_that(one, other):
    pages = [("http://one.example/a", *under_one_heading(one)), ("http://two.example/b", *under_one_heading(other))]
    for crawled in (pages, pages[::-1]):
        assert verdicts(*crawled) == ["new", "related"]


@pytest.mark.parametrize(
    ("head", "above"),
    [
        ('<meta property="og:site_name" content="{}">', ""),
        ("", "<a href='/'><img alt='{}'></a>"),
        ("", "<h1><a href='/'>{}</a></h1>"),
        ("", "<h1><a href='/jobs'>Jobs</a></h1><a href='/'>{}</a>"),
    ],
)
def test_what_a_page_calls_its_site_is_no_part_of_its_title(head, above):
    pages = []
    for host, name in (("one", "York Mercury"), ("two", "The Leeds Post")):
        html, item = under_one_heading(name, head.format(name))
        pages.append((f"http://{host}.example/a", html.replace("<h1>", f"{above.format(name)}<h1>", 1), item))
    for crawled in (pages, pages[::-1]):
        assert verdicts(*crawled) == ["new", "duplicate"]


def test_a_title_that_is_all_that_a_site_is_called_is_compared():
    pages = []
    for host, name in (("one", "Oak table, lot 4"), ("two", "Oak table, lot 7")):
        html = page("", name).replace("<h1>", f"<a href='/'>{name}</a><h1>", 1)
        pages.append((f"http://{host}.example/a", html, item(title=name)))
    assert verdicts(*pages) == ["new", "related"]


def test_what_a_reader_writes_below_the_heading_names_no_site():
    pages = [
        (f"http://{host}.example/a", html.replace("</main>", f"<p><a href='/'>{town}</a></p></main>"), item)
        for host, town in (("one", "Leeds"), ("two", "York"))
        for html, item in [under_one_heading(town)]
    ]
    assert verdicts(*pages) == ["new", "related"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("€ 350,000", "€ 420,000"),
        ("Final score 2:1", "Final score 3:1"),
        ("Acme Ltd", "Globex Ltd"),
        ("Ref. A-1207", "Ref. A-1388"),
        ("It is about hepatitis B and how to live with it.", "It is about hepatitis C and how to live with it."),
        ("It has a power of 5 mW in all weathers.", "It has a power of 5 MW in all weathers."),
    ],
)  # fmt: skip
def test_a_line_with_another_value_is_another_one(one, other):
    first, second = ([story(3)[0], line, *story(3)[1:]] for line in (one, other))
    assert across(page("", text=first), page("", text=second)) == "related"


@pytest.mark.parametrize(
    ("one", "other"), [(["Rating", "3/5"], ["Rating", "1/5"]), (["See", "page 2"], ["See", "page 7"])]
)
def test_a_number_by_itself_in_a_text_is_no_word_for_a_view(one, other):
    first, second = ([story(3)[0], *lines, *story(3)[1:]] for lines in (one, other))
    assert across(page("", text=first), page("", text=second)) == "related"
    assert across(page("", text=first), page("", text=[*story(3)[:1], *one, "print", *story(3)[1:]])) == "duplicate"


@pytest.mark.parametrize(("one", "other"), [("4 min read", "3 min read"), ("阅读时间 4 分钟", "阅读时间 6 分钟")])
def test_a_reading_time_is_no_value(one, other):
    first, second = ([line, *story(3)] for line in (one, other))
    assert across(page("", text=first), page("", text=second)) == "duplicate"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The footway will remain open.", "The footway will remain closed."),
        ("The work has cost two million euros so far.", "The work has cost two million pounds so far."),
        ("They meet in the village hall at 7.30 pm on Monday.", "They meet in the village hall at 7.30 am on Monday."),
        ("Melt 50 g of the sugar in a pan.", "Melt 50 mg of the sugar in a pan."),
        ("The council can wait for the summer.", "The council cannot wait for the summer."),
        ("A load limit is in force on the bridge.", "No load limit is in force on the bridge."),
        ("The mayor accused Mr Varga of spreading rumours.", "Mr Varga accused the mayor of spreading rumours."),
        ("Rovers beat United in the derby on Saturday.", "United beat Rovers in the derby on Saturday."),
        ("WiFi ✓ Pool ✗", "WiFi ✗ Pool ✓"),
        ("It was -5 degrees.", "It was 5 degrees."),
        ("The bridge is rated A+ by the state.", "The bridge is rated A- by the state."),
        ("The bridge is used by trams.", "The bridge isn't used by trams."),
        ("It was 18° in the shade.", "It was 19° in the shade."),
    ],
)  # fmt: skip
def test_a_text_that_is_equal_but_for_a_word_or_its_order_is_another_one(one, other):
    texts = [[*LONG[:5], line, *LONG[5:]] for line in (one, other)]
    pages = [page("", text=text) for text in texts]
    assert_kept(("http://one.example/a", pages[0]), ("http://two.example/b", pages[1]))
    items = [{"title": TITLE, "text": " ".join(text)} for text in texts]
    for here, there in ((0, 1), (1, 0)):
        second = ("http://two.example/b", pages[there], items[there])
        assert verdicts(("http://one.example/a", pages[here], items[here]), second) == ["new", "related"]


def test_a_chinese_value_in_a_text_that_is_equal_otherwise_makes_another_one():
    lines = [f"施工期间行人和骑车人可以使用大桥{side}的人行道，请相互转告。" for side in ("南侧", "北侧")]
    first, second = (page("", text=[*zh_story(5)[:3], line, *zh_story(5)[3:]]) for line in lines)
    assert_kept(("http://one.example/", first), ("http://two.example/", second))


def test_a_passage_counts_over_the_borders_of_paragraphs():
    own = [sentence + "." for sentence in " ".join(story(9, 1)).split(". ")]
    assert len(own) > 2
    assert across(page("", text=story(4, 9)), page("", text=[*own, *story(4, 9)])) == "related"


def test_numbering_of_lines_is_no_content():
    lines = story(5)
    numbered = [f"<sup>{number}</sup> {line}" for number, line in enumerate(lines, 1)]
    chapter = [f"3:{number} {line}" for number, line in enumerate(lines, 1)]
    assert across(page("", text=numbered), page("", text=chapter)) == "duplicate"
    assert without_numbering(["12 gulls came.", "3 stayed.", "7 left."]) == ["12 gulls came.", "3 stayed.", "7 left."]


# --- items


def item(**values):
    return {"title": TITLE, "text": " ".join(story(1)), **values}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"home": {"name": "Lions", "goals": 2}, "away": {"name": "Bears", "goals": 1}},
         {"home": {"name": "Bears", "goals": 2}, "away": {"name": "Lions", "goals": 1}}),
        ({"file_urls": ["http://one.example/a.csv"]}, {"file_urls": ["http://one.example/b.csv"]}),
        ({"variants": [{"colour": "red", "stock": 3}, {"colour": "blue", "stock": 0}]},
         {"variants": [{"colour": "red", "stock": 0}, {"colour": "blue", "stock": 3}]}),
    ],
)  # fmt: skip
def test_on_one_site_items_are_compared_value_by_value(one, other):
    html = page("")
    first, second = ("http://one.example/p/1", html, item(**one)), ("http://one.example/p/1?s=2", html, item(**other))
    assert verdicts(first, second)[1] != "duplicate"
    assert verdicts(first, (second[0], html, item(**one)))[1] == "duplicate"


def test_a_value_that_the_original_does_not_show_counts_on_any_site():
    first, second = ({"company": name, "text": " ".join(story(1))} for name in ("Alder Bakery", "Birch Bakery"))
    html = page("")
    assert verdicts(("http://one.example/", html, first), ("http://two.example/", html, second))[1] != "duplicate"
    shown = [html.replace("<footer>", f"<footer><p>{each['company']}</p>") for each in (first, second)]
    pages = ("http://one.example/", shown[0], first), ("http://two.example/", shown[1], second)
    assert verdicts(*pages)[1] != "duplicate"
    both = [html.replace("<footer>", "<footer><p>Alder Bakery</p><p>Birch Bakery</p>") for _ in "12"]
    assert verdicts(("http://one.example/", both[0], first), ("http://two.example/", both[1], second))[1] != "duplicate"
    without = {"text": first["text"]}
    assert (
        verdicts(("http://one.example/", both[0], without), ("http://two.example/", both[1], second))[1] == "duplicate"
    )


@pytest.mark.parametrize(("one", "other"), [("{}-05-12T18:30", "{}-06-12T18:30"), ("12.05.{}", "13.05.{}")])
def test_a_date_that_is_to_come_is_no_date_of_publication(one, other):
    years = datetime.now(timezone.utc).year + 1, 2019
    for year, verdict in zip(years, ("related", "duplicate"), strict=True):
        shown = [each.format(year) for each in (one, other)]
        pages = [
            (url, page(f"<p>{day}</p>"), item(start=day))
            for url, day in zip(("http://one.example/a", "http://two.example/b"), shown, strict=True)
        ]
        assert verdicts(*pages)[1] == verdict


def test_a_value_that_all_pages_of_a_site_have_is_the_sites():
    pages = [
        (
            f"http://{site}.example/{n}",
            page("", f"Story {n}", text=story(n)),
            {"paper": site, "text": " ".join(story(n))},
        )
        for site in ("one", "two")
        for n in range(20, 26)
    ]
    assert verdicts(*pages)[-3:] == ["duplicate"] * 3


# --- values, signs and lengths

HERE, VIEW, THERE = "http://one.example/p/1", "http://one.example/p/1?v=2", "http://two.example/b"
LONG = story(31, 9)


def test_a_text_that_is_too_long_to_be_compared_is_a_copy_if_it_is_equal():
    def gauge(height):
        return page("", text=[*story(32, 320), f"The gauge by the bridge stood at {height} cm."])

    assert verdicts((HERE, gauge(412)), (THERE, gauge(412))) == ["new", "duplicate"]
    assert_kept((HERE, gauge(412)), (THERE, gauge(578)))
    with_tick, without = (
        gauge(412).replace("<main>", f"<main><p>Works without a network: {sign}</p>") for sign in "✓✗"
    )
    assert verdicts((HERE, with_tick), (THERE, without)) == ["new", "related"]


def test_a_sentence_with_a_word_less_is_another_one_at_the_same_address():
    known, other = ([*LONG, f"The keys are in the {place} of the house."] for place in ("lower hall", "hall"))
    assert_kept((HERE, page("", text=known)), (VIEW, page("", text=other)))
    known, other = ([*LONG, line, *story(9, 2)] for line in ("Not for children.", "For children."))
    assert_kept((HERE, page("", text=known)), (VIEW, page("", text=other)))


def test_of_what_is_not_even_related_no_edit_is_named(monkeypatch):
    """A record has none of them, and `explain` compares the two again."""
    named = []
    monkeypatch.setattr(edits._Alignment, "_edited", lambda _, sentence, __: named.append(sentence) or [])
    quoted = story(9)[:2]
    with Deduplicator() as dedup:
        dedup.add("http://a.example/1", page("", text=[*story(1), *quoted]))
        assert dedup.add("http://b.example/2", page("", text=[*quoted, *story(2)])).verdict == "new"
    assert named == []
