"""Reports in a real browser: no errors, no requests, all controls, on paper and on a phone.

Needs the packages of the `dev` extra and Chromium, such as Debian's package of that name.
"""

import shutil
from itertools import product

import pytest

from whosthere.auditing.policy import Policy
from whosthere.reporting.report import audit_report, comparison_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="there is no axe-core")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium: apt-get install chromium", allow_module_level=True)
pytestmark = pytest.mark.slow
WIDTHS = {"desktop": 1280, "tablet": 768, "phone": 390}
PAPER = 718  # A4 less margins, in CSS pixels
PATIENCE = 600_000
"""Milliseconds after which a browser hangs, however busy the machine is."""
# All letters of a monospaced font are 0.6 em wide: with spaces between them these are wider than
# the letters of any usual font, whatever is installed. The last are wider than any font at all.
LETTERS = {
    "this machine's": "",
    "narrow": "font-family: monospace !important; letter-spacing: -.2em !important",
    "wide": "font-family: monospace !important; letter-spacing: .1em !important",
    "widest": "font-family: monospace !important; letter-spacing: .6em !important",
}
EVIL = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>\"'"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        one = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, full_audit, made_audit, with_places):
    """Files of an ordinary audit, one with names that try to break out, and comparisons."""
    folder = tmp_path_factory.mktemp("pages")
    foreign = with_places(
        made_audit(
            (f"{EVIL}, m=9", f"{'x' * 10_000}, m=9", "\u202egnorw\u202c, m=9"),
            (EVIL, "y" * 10_000, "likelihood-ratio"),
            policy=Policy(f"{EVIL}{'z' * 10_000}", {"auc": 0.6}),
            name=EVIL,
            targets=6,
            releases=8,
        ),
        [EVIL, "w" * 10_000, "\u202e\u05d0", *"abcdef"],
    )
    made = {
        "audit": audit_report(full_audit),
        "foreign": audit_report(foreign),
        "comparison": comparison_report([full_audit, full_audit]),
        "crowd": comparison_report([full_audit] * 9),
    }
    for name, report in made.items():
        report.save(folder / f"{name}.html")
    return folder


@pytest.fixture
def opened(browser, pages):
    """Open a page; whatever it says to the console or asks for fails the test."""
    contexts, said, asked = [], [], []

    def visit(name="audit", *, width=1280, scheme="light", script=True, letters=None):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
            reduced_motion="reduce",
            bypass_csp=letters is not None,
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        address = (pages / f"{name}.html").as_uri()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        assert asked.pop(0) == address
        if letters is not None:
            page.add_style_tag(content=f"* {{ {letters} }}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert said == []
    assert asked == []


def shown(page, selector):
    return page.locator(f"{selector}:visible")


def every(*kinds, small):
    """Return all combinations; those that are not in the small form run with ``--full`` alone."""
    return [
        pytest.param(*each, id="-".join(each), marks=() if each in small else pytest.mark.full)
        for each in product(*kinds)
    ]


PAGES, SCHEMES = ("audit", "foreign", "comparison"), ("light", "dark")


@pytest.mark.parametrize(
    ("name", "device", "scheme"),
    every(
        *(PAGES, WIDTHS, SCHEMES),
        small={
            *(("audit", "desktop", "dark"), ("audit", "phone", "light")),
            *(("foreign", "phone", "dark"), ("comparison", "tablet", "light")),
        },
    ),
)
def test_opens_without_errors_requests_or_overflow(opened, name, device, scheme):
    width = WIDTHS[device]
    page = opened(name, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.ran") is None
    assert shown(page, "h1").count() == 1
    assert shown(page, ".chart").count() >= 3
    page.mouse.wheel(0, 5000)


def test_ink_differs_from_paper_in_both_schemes(opened):
    for scheme in ("light", "dark"):
        page = opened(scheme=scheme)
        ink, paper = page.evaluate(
            "(() => { const s = getComputedStyle(document.body);"
            " return [s.color, s.backgroundColor]; })()"
        )
        light = [sum(map(int, colour[4:-1].split(","))) for colour in (ink, paper)]
        assert (light[0] < light[1]) == (scheme == "light")


class TestFirstScreen:
    @pytest.mark.parametrize("device", WIDTHS)
    def test_what_is_left_is_seen_without_scrolling_sideways(self, opened, device):
        page = opened(width=WIDTHS[device])
        box = page.locator("#verdicts .scroll").bounding_box()
        for said in ("pattern correlation", "cells kept", "people with AUC \u2265 0.9"):
            cell = page.locator(f"#verdicts td[data-head='{said}']").first.bounding_box()
            assert cell["x"] + cell["width"] <= box["x"] + box["width"] + 1, said

    def test_long_verdicts_do_not_make_it_scroll(self, opened):
        """At a width at which all columns fit beside each other, but not longer words in them."""
        page = opened(width=1250)
        page.evaluate(
            "document.querySelectorAll('#verdicts td .badge')"
            ".forEach(one => { one.textContent = 'CANNOT TELL AND USELESS'; })"
        )
        box = page.locator("#verdicts .scroll")
        assert box.evaluate("one => one.scrollWidth - one.clientWidth") == 0

    def test_heads_are_not_broken(self, opened):
        page = opened()
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        broken = page.evaluate(
            """[...document.querySelectorAll("thead th")].filter(e => {
              if (!e.checkVisibility()) return false;
              const lines = [...e.querySelectorAll('.unbroken')];
              const [what, last] = [e.querySelector('.what'), lines.at(-1)];
              const beside = !what || what.getBoundingClientRect().top
                < last.getBoundingClientRect().bottom;
              return lines.some(line => line.getClientRects().length > 1) || !beside;
            }).map(e => e.textContent)"""
        )
        assert broken == []

    def test_what_only_some_read_is_closed_and_opened_by_links(self, opened):
        page = opened()
        assert page.evaluate("document.documentElement.scrollHeight") <= 6000
        for folded in ("method", "policy", "repeat", "glossary"):
            assert page.locator(f"#{folded}").get_attribute("open") is None
            page.locator(f"nav a[href='#{folded}']").click()
            assert page.locator(f"#{folded} > :not(summary)").first.is_visible()

    def test_what_is_signed_is_on_the_first_sheet_of_paper(self, opened):
        page = opened(width=PAPER)
        assert shown(page, ".subject").count() == 1
        assert shown(page, ".signing").count() == 0
        page.emulate_media(media="print")
        box = page.locator(".signing").bounding_box()
        assert box["y"] + box["height"] < 1030  # A4 less margins
        assert shown(page, ".signing .blank").count() == 6


class TestControls:
    def test_choose_what_is_shown(self, opened):
        page = opened()
        assert shown(page, "#who .panel").count() == 1
        page.select_option("#choose-setting", "3")
        assert "laplace" in shown(page, "#who .panel h3").inner_text()
        assert "laplace" in shown(page, "#where .panel h3").inner_text()
        page.select_option("#choose-attack", "2")
        assert "likelihood-ratio" in shown(page, "#who .panel h3").inner_text()
        assert shown(page, "g.faded").count() == 2
        page.select_option("#choose-setting", "all")
        page.select_option("#choose-attack", "all")
        assert shown(page, "#who .panel").count() == 6
        assert page.locator("g.faded").count() == 0

    def test_choose_a_measure(self, opened):
        page = opened()
        assert shown(page, ".picture").count() == 1
        page.locator("#choose select").first.select_option(label="TPR at 1 % FPR")
        assert "TPR" in shown(page, ".picture h3").inner_text()

    def test_sort_by_mouse(self, opened):
        page = opened()
        table = page.locator("#verdicts table")
        button = table.get_by_role("button", name="mean AUC", exact=True).first
        button.click()
        assert "mean AUC" in page.locator("#verdicts th[aria-sort=ascending]").inner_text()
        first = table.locator("tbody tr").first
        assert "laplace" in first.inner_text()
        button.click()
        assert "mean AUC" in page.locator("#verdicts th[aria-sort=descending]").inner_text()
        assert "raw" in first.inner_text()

    def test_filter(self, opened):
        page = opened()
        page.locator("#who summary").first.click()
        box = page.locator("#who .filter input")
        box.fill("suppress likelihood")
        assert shown(page, "#who tbody tr").count() == 1
        assert page.locator("#who .filter output").inner_text() == "1 of 6 rows"
        box.fill("")
        assert shown(page, "#who tbody tr").count() == 6

    def test_values_where_the_pointer_rests(self, opened):
        page = opened()
        page.locator("#who .panel:visible .points circle").first.scroll_into_view_if_needed()
        page.locator("#who .panel:visible .points circle").last.hover(force=True)
        assert shown(page, ".tip").inner_text().startswith("target ")
        page.keyboard.press("Escape")
        assert shown(page, ".tip").count() == 0

    def test_by_keyboard(self, opened):
        page = opened()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.locator("summary").first.focus()
        before = page.locator("details[open]").count()
        page.keyboard.press("Enter")
        assert page.locator("details[open]").count() == before + 1
        page.locator("#choose-setting").focus()
        page.keyboard.press("ArrowDown")
        assert "suppress" in shown(page, "#who .panel h3").inner_text()
        button = page.locator("#verdicts table").get_by_role("button", name="mean AUC", exact=True)
        button.first.focus()
        page.keyboard.press("Space")
        assert page.locator("#verdicts th[aria-sort=ascending]").count() == 1

    def test_focus_can_be_seen(self, opened):
        page = opened()
        for selector in ("nav a", "#choose-setting", "#verdicts th button", "summary", ".what"):
            page.locator(f"{selector}:visible").first.focus()
            page.keyboard.press("Shift")
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style == "solid", selector

    def test_words_are_explained_where_they_stand(self, opened):
        page = opened()
        page.locator("#verdicts .what").first.click()
        assert page.evaluate("location.hash").startswith("#word-")
        assert page.locator(":target dd").is_visible()


def test_is_complete_without_a_script(opened):
    page = opened(script=False)
    assert shown(page, ".panel").count() == 12
    page.get_by_text("What an attacker estimates of everybody").click()
    assert shown(page, ".panel").count() == 15
    assert shown(page, ".picture").count() == 4
    assert shown(page, ".chooser").count() == 0
    assert page.locator("button").count() == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    every(
        *((*PAGES, "crowd"), LETTERS),
        small={
            ("audit", "wide"),
            ("foreign", "widest"),
            ("comparison", "narrow"),
            ("crowd", "wide"),
        },
    ),
)
def test_on_paper_nothing_is_cut_or_folded(opened, name, kind):
    page = opened(name, width=PAPER, letters=LETTERS[kind])
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert too_wide(page) == []
    assert kind == "widest" or cut_from_pictures(page) == []
    assert shown(page, ".chooser").count() == 0
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_on_paper_numbers_are_not_broken(opened):
    """In letters of a usual width, no number and no interval's end spans two lines."""
    page = opened(width=PAPER, letters="font-family: monospace !important")
    page.emulate_media(media="print")
    broken = page.evaluate(
        """[...document.querySelectorAll('td.numeric bdi')].filter(e =>
          !e.textContent.includes(' ') && e.getClientRects().length > 1).map(e => e.textContent)"""
    )
    assert broken == []


def too_wide(page):
    """Return what reaches over the edge of the paper, but for what pictures hold."""
    return page.evaluate(
        f"""[...document.querySelectorAll('body *')].filter(e => !e.closest('.skip, svg *') &&
          e.getBoundingClientRect().right > {PAPER} + 1).map(e => e.outerHTML.slice(0, 200))"""
    )


def cut_from_pictures(page):
    """Return the words that reach over the edge of their picture."""
    return page.evaluate(
        """[...document.querySelectorAll('svg text')].filter(e => {
          const words = e.getBoundingClientRect();
          const frame = e.closest('svg').getBoundingClientRect();
          return words.right > frame.right + 1 || words.left < frame.left - 1;
        }).map(e => e.textContent)"""
    )


@pytest.mark.parametrize(
    ("name", "scheme"),
    every(PAGES, SCHEMES, small={("audit", "light"), ("foreign", "dark"), ("comparison", "light")}),
)
def test_axe_finds_nothing_serious(opened, name, scheme):
    page = opened(name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = axe.Axe().run(page, options=None).response
    serious = {
        f"{one['impact']}: {one['id']} {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in {"serious", "critical"}
    }
    assert serious == set()
    assert len(found["passes"]) > 20
