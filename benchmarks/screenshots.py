"""Pictures of the report and of the terminal for README.md, from the audit of docs/tutorial.md.

    python benchmarks/screenshots.py RUN

Needs the `dev` extra and Chromium.
"""

import io
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI

from whosthere.auditing.loading import load
from whosthere.cli import console
from whosthere.cli.screen import show_audit
from whosthere.reporting.report import audit_report

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
RUN = Path(sys.argv[1])


def reduced(path: Path) -> None:
    """Keep a picture small: few colours are enough for text and marks."""
    with Image.open(path) as picture:
        picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=224).save(path, optimize=True)


def take_report(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 1560})
    html = ROOT / "build" / "report.html"
    audit_report(load(RUN)).save(html, force=True)
    page.goto(html.as_uri())
    below = page.locator("#verdicts .legend").bounding_box()
    assert below is not None
    clip = {"x": 0, "y": 0, "width": 1280, "height": below["y"] + below["height"] + 10}
    page.screenshot(path=IMAGES / "report.png", full_page=True, clip=clip)


def take_terminal(page: Page) -> None:
    """Print the results as `whosthere audit` does, and draw what a terminal shows of it."""
    recorder = Console(
        record=True, width=126, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.out = recorder
    with redirect_stdout(io.StringIO()):
        show_audit(load(RUN))
    lines = recorder.export_html(inline_styles=True, theme=MONOKAI).split("\n")
    start = next(i for i, line in enumerate(lines) if "<pre" in line)
    shown = "\n".join(lines[start:])
    style = (
        "display:inline-block;padding:16px;background:#1b1e23;color:#e8eaed;"
        "font:14px/1.18 'DejaVu Sans Mono'"
    )
    page.set_content(f"<body style='margin:0'><div style=\"{style}\">{shown}</pre></div>")
    page.add_style_tag(content="pre{font:inherit!important;margin:0} code{font:inherit!important}")
    page.locator("div").first.screenshot(path=IMAGES / "terminal.png")


def main() -> None:
    chromium = shutil.which("chromium") or "chromium"
    subprocess.run([chromium, "--version"], check=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        # A page each: the report's content-security policy forbids the styles of the terminal.
        take_report(browser.new_page())
        take_terminal(browser.new_page())
        browser.close()
    for name in ("report.png", "terminal.png"):
        reduced(IMAGES / name)
        print(name, (IMAGES / name).stat().st_size // 1000, "kB")


if __name__ == "__main__":
    main()
