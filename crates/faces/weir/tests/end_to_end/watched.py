"""The sources of a run at the page of `weir serve`, in a real browser: watched.py LINK CHROMIUM SCREENSHOTS TELESCOPE.

A run of a test beam goes on, whose telescope has slipped. Its process, TELESCOPE, is killed, and the page says so.
"""

import os
import re
import signal
import sys
from pathlib import Path

from page import DEADLINE_MS, FAINT, UNNAMED, by_key, opened, shoot
from playwright.sync_api import Browser, Page, expect, sync_playwright


def main() -> None:
    link, chromium, screenshots, telescope = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for place, scheme in [("laptop", "light"), ("wall", "dark"), ("phone", "light")]:
            page, wrong = at_dataflow(browser, link, place, scheme)
            looks_well(page, screenshots / f"sources-{place}-{scheme}.png")
            assert wrong == [], wrong
            page.close()
        page, wrong = at_dataflow(browser, link, "laptop", "light")
        sends(page)
        os.kill(telescope, signal.SIGKILL)
        expect(cells(page, "telescope").nth(1)).to_have_text("lost lost 1 ×")
        looks_well(page, screenshots / "sources-lost.png")
        assert wrong == [], wrong
        browser.close()


def at_dataflow(browser: Browser, link: str, place: str, scheme: str) -> tuple[Page, list[str]]:
    page, wrong = opened(browser, link, place, scheme)
    by_key(page, "dataflow")
    expect(page.get_by_role("table", name="Sources").get_by_role("row")).to_have_count(4)
    return page, wrong


def cells(page: Page, source: str):
    return page.get_by_role("table", name="Sources").get_by_role("row", name=re.compile(f"^{source}")).get_by_role("cell")


def sends(page: Page) -> None:
    for source in ["tlu", "telescope", "device"]:
        expect(cells(page, source).nth(1)).to_have_text(re.compile("running|xoff"))
        expect(cells(page, source).nth(2)).to_have_text(re.compile(r"[1-9].*Hz"))
        expect(cells(page, source).nth(3)).to_have_text(re.compile(r"[1-9].*B/s"))
    before = cells(page, "tlu").nth(4).text_content()
    expect(cells(page, "tlu").nth(4)).not_to_have_text(before)
    expect(cells(page, "telescope").nth(8)).to_contain_text("slipped 1 ×, last at event 499 (+1)")
    expect(cells(page, "device").nth(8)).to_contain_text("ppm")
    expect(cells(page, "telescope").nth(9)).to_contain_text("event ")


def looks_well(page: Page, picture: Path) -> None:
    shoot(page, picture, True)
    for what, found in [("no name for screen readers", page.evaluate(UNNAMED)), ("too faint to read", page.evaluate(FAINT))]:
        assert found == [], f"{what}: {found}"
    beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert beyond <= 0, f"{beyond} pixels wider than the screen"


if __name__ == "__main__":
    main()
