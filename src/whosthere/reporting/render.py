"""From sections to one HTML file that needs nothing else.

A report may hold what must not leave a house, so it must not talk to anybody. Style and script
stand in the file, and a content-security policy allows only these two, by their hashes; it forbids
style attributes. Pictures are SVG that Python writes. The script only chooses, sorts and filters
what is there already, so a page without it is complete.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from whosthere._version import __version__
from whosthere.reporting.words import shortened, texts, visible, words_of


def render(template: str, *, fragment: bool = False, **context: object) -> str:
    """Return a page, or a part of one for somebody else's page, such as a notebook.

    Parameters
    ----------
    template
        Its name, without the ending.
    fragment
        Whether it is a part. Its style holds within it alone, and there is no script.
    context
        What the template needs, with the glossary that other parts of the page link to.
    """
    script = _asset("script.js")
    style = _asset("theme.css") + _asset("page.css") + _asset("parts.css")
    if fragment:
        theme = _asset("theme.css").replace(":root", ".whosthere")
        own = Markup(".whosthere { background: var(--paper); color: var(--ink); padding: .5rem;\n")
        style = theme + own + _asset("parts.css") + Markup("}")
    page = _environment().get_template(f"{template}.html.j2")
    return page.render(
        style=style,
        script=script,
        policy_of_content=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        version=__version__,
        texts=texts(),
        is_fragment=fragment,
        **context,
    )


@cache
def _environment() -> Environment:
    """Return the templates; whatever they show is escaped."""
    made = Environment(
        loader=PackageLoader("whosthere.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    made.filters |= {
        "short": shortened,
        "words": words_of,
        "prose": _prose,
        "anchor": _anchor,
    }
    return made


@cache
def _asset(name: str) -> Markup:
    """Return a file that belongs to every page, as it is."""
    source = files("whosthere.reporting") / "templates" / name
    return Markup(source.read_text(encoding="utf-8"))  # noqa: S704 - our own file


def _prose(text: str) -> Markup:
    """Return a text in which commands stand between backticks."""
    commands = re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(commands)  # noqa: S704 - escaped before


def _anchor(key: str) -> str:
    return "word-" + re.sub(r"[^A-Za-z0-9]+", "-", key)


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
