"""People at the page of `weir serve`, in a real browser: page.py LINK CHROMIUM SCREENSHOTS.

Takes data with two runs, looks at each view, and fails at the first thing that is not as people need it.
"""

import re
import sys
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

VIEWS = ["shift", "dataflow", "events", "quality", "trends", "messages", "runs", "setup"]
PLACES = {"laptop": (1366, 768), "wall": (2560, 1440), "phone": (390, 844)}
# Only what hangs meets it.
DEADLINE_MS = 240_000


def main() -> None:
    link, chromium, screenshots = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        shift(browser, link, screenshots)
        browser.close()


def shift(browser: Browser, link: str, screenshots: Path) -> None:
    page, wrong = opened(browser, link, "laptop", "light")
    address = link.split("#")[0]
    assert "key=" not in page.url, "nobody reads the key off the address"
    expect(page.get_by_role("heading", level=1)).to_have_text("quickstart")
    state(page, "absent")

    page.get_by_role("textbox", name="Operator").fill("anna")
    order(page, "Boot")
    state(page, "booted")
    expect(page.get_by_text("anna commands", exact=True).first).to_be_visible()
    page.get_by_role("textbox", name="Duration").fill("1h")
    order(page, "Start")
    state(page, "running")
    moves(page)
    an_event_is_looked_into(page)
    a_histogram_is_looked_at(page)
    a_time_is_pointed_at(page)
    look_at_all(browser, link, screenshots, "running")

    # By keyboard alone: the orders are reached, and the focus stays with them.
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    state(page, "paused")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.keyboard.press("Enter")
    state(page, "running")
    moves(page)
    another_watches_and_takes_over(browser, link, address, page)

    order(page, "Stop")
    state(page, "booted")
    run_is_found(page, "1", "good")
    remark = page.get_by_role("form", name="Remark")
    remark.get_by_role("textbox").fill("the beam was fine")
    remark.get_by_role("combobox").select_option("tainted")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("region", name="Remarks")).to_contain_text("the beam was fine")

    by_key(page, "shift")
    page.get_by_role("textbox", name="Events").fill("500")
    page.get_by_role("textbox", name="Duration").fill("")
    order(page, "Start")
    expect(figure(page, "Last run")).to_have_text("2")
    run_is_found(page, "2", "good")
    page.get_by_role("region", name="Difference").get_by_role("combobox").select_option("1")
    expect(page.get_by_role("region", name="Difference")).to_contain_text("run.events")
    wrong_orders_are_explained(page)
    finds_words(page)
    a_change_is_foreseen(page)
    order(page, "Shutdown")
    state(page, "absent")
    look_at_all(browser, link, screenshots, "over")
    assert wrong == [], wrong


def an_event_is_looked_into(page: Page) -> None:
    by_key(page, "events")
    sheet = page.get_by_role("region", name="Event", exact=True)
    expect(sheet).to_contain_text("lumi block")
    page.get_by_role("checkbox", name="Open the newest").uncheck()
    number = sheet.get_by_role("heading").text_content()
    page.get_by_role("combobox", name="Shown by").select_option("event builders")
    rows = page.get_by_role("table", name="Sampled events").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("sfi-")

    # The tree of fragments by keyboard alone, and what a fragment is made of.
    fragments, bytes_of = page.get_by_role("region", name="Fragments"), page.get_by_role("region", name="Bytes")
    expect(fragments).to_contain_text("ros-1")
    expect(fragments).to_contain_text("level 2")
    expect(bytes_of.get_by_role("heading")).to_contain_text("ROB 0x")
    header = fragments.get_by_role("button", name="Header of the event")
    header.focus()
    page.keyboard.press("Enter")
    expect(bytes_of.get_by_role("heading")).to_have_text("Header of the event")
    # The words of a full event begin with its marker.
    expect(bytes_of.locator("pre")).to_contain_text("000000  aa1234aa")
    expect(header).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(bytes_of.locator("pre")).to_contain_text("dd1234dd")
    expect(bytes_of).to_contain_text("level-1 id")
    fragments.get_by_text("level 2", exact=True).click()
    with page.expect_download() as saved:
        sheet.get_by_role("link", name="Save as a file").click()
    assert saved.value.suggested_filename.startswith("run1.event"), saved.value.suggested_filename
    expect(sheet.get_by_role("heading")).to_have_text(number)
    by_key(page, "shift")


def a_histogram_is_looked_at(page: Page) -> None:
    by_key(page, "quality")
    table = page.get_by_role("table", name="Histograms")
    table.get_by_role("link", name="Size of built events").click()
    sheet = page.get_by_role("region", name="Histogram", exact=True)
    expect(sheet).to_contain_text("system.event-size.sfi")
    expect(sheet).to_contain_text("There is no reference.")
    expect(sheet.get_by_role("img", name=re.compile("most entries between"))).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save its histograms").click()
    assert saved.value.suggested_filename == "references.json"
    by_key(page, "shift")


def a_time_is_pointed_at(page: Page) -> None:
    """The cursor says the values of a time in all charts; a line can be taken out."""
    by_key(page, "trends")
    charts = page.locator("#view-trends figure")
    first, line = charts.first, "polyline.line-2"
    first.locator(line).first.wait_for(state="attached")
    first.get_by_role("img").focus()
    page.keyboard.press("ArrowLeft")
    for chart in charts.all():
        expect(chart.locator(".when")).to_have_text(re.compile(r"at \d\d:\d\d:\d\d, run 1"))
        expect(chart.locator("line.cursor")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(charts.last.locator(".when")).to_have_text("")
    charts.last.get_by_role("img").hover()
    expect(first.get_by_role("img", name=re.compile(r"^Events per second: level 1 .* at \d\d:\d\d:\d\d"))).to_be_visible()
    recorded = first.get_by_role("button", name=re.compile("^recorded"))
    recorded.click()
    expect(first.locator(line)).to_have_count(0)
    expect(recorded).to_have_attribute("aria-pressed", "false")
    recorded.click()
    expect(first.locator(line).first).to_be_attached()
    by_key(page, "shift")


def another_watches_and_takes_over(browser: Browser, link: str, address: str, page: Page) -> None:
    watcher, wrong = opened(browser, address, "laptop", "dark")
    state(watcher, "running")
    expect(watcher.get_by_text("This page watches.")).to_be_visible()
    expect(watcher.get_by_role("button", name="Stop")).to_be_disabled()
    watcher.close()
    bob, wrong_of_bob = opened(browser, link, "laptop", "dark")
    bob.get_by_role("textbox", name="Operator").fill("bob")
    expect(bob.get_by_role("button", name="Stop")).to_be_disabled()
    bob.get_by_role("button", name="Take over").click()
    expect(bob.get_by_role("button", name="Stop")).to_be_enabled()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    bob.get_by_role("button", name="Give up").click()
    expect(page.get_by_role("button", name="Stop")).to_be_enabled()
    bob.close()
    assert wrong + wrong_of_bob == [], wrong + wrong_of_bob


def run_is_found(page: Page, number: str, quality: str) -> None:
    by_key(page, "runs")
    page.get_by_role("table", name="Runs").get_by_role("link", name=number, exact=True).click()
    sheet = page.get_by_role("region", name=f"Run {number}")
    expect(sheet).to_contain_text(quality)
    expect(page.get_by_role("region", name="Files")).to_contain_text(f".{int(number):08}.")
    expect(page.get_by_role("region", name="Account")).to_contain_text("recorded")


def wrong_orders_are_explained(page: Page) -> None:
    by_key(page, "shift")
    page.get_by_role("textbox", name="Duration").fill("for ever")
    order(page, "Start")
    expect(page.locator("#view-shift .answer")).to_contain_text("run.duration")
    page.get_by_role("textbox", name="Duration").fill("")


def finds_words(page: Page) -> None:
    by_key(page, "messages")
    page.get_by_role("searchbox", name="Words").fill("ANNA has begun")
    rows = page.locator("#view-messages li")
    expect(rows).to_have_count(2)
    page.get_by_role("combobox", name="Severity").select_option("errors")
    expect(rows).to_have_count(0)
    by_key(page, "setup")
    page.get_by_role("searchbox", name="Find").fill("ros.pages")
    expect(page.get_by_role("region", name="ros", exact=True).get_by_role("textbox", name="ros.pages")).to_have_value("512")
    by_key(page, "shift")


def a_change_is_foreseen(page: Page) -> None:
    by_key(page, "setup")
    page.get_by_role("searchbox", name="Find").fill("sfi.")
    count = page.get_by_role("textbox", name="sfi.count")
    count.fill("many")
    count.press("Tab")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#view-setup .answer")).to_contain_text("sfi.count")
    count.fill("3")
    count.press("Tab")
    page.get_by_role("textbox", name="Another key").fill("level1.rate = 1 kHz")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("list", name="Changed keys")).to_contain_text("sfi.count = 3")
    page.get_by_role("button", name="Forecast").click()
    forecast = page.get_by_role("region", name="Forecast")
    expect(forecast).to_contain_text("1.00\u00a0kHz")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the configuration").click()
    assert saved.value.suggested_filename == "partition.toml"
    by_key(page, "shift")


def shoot(page: Page, path: Path, whole: bool) -> None:
    """A picture of a page; on a busy machine the browser cannot take each one at the first try."""
    for _ in range(3):
        try:
            page.screenshot(path=path, full_page=whole)
            return
        except Error as error:
            cause = error
    raise cause


def look_at_all(browser: Browser, link: str, screenshots: Path, when: str) -> None:
    """Each view on a laptop and on a wall, light and dark: has names for screen readers, and nothing sticks out."""
    for place, scheme in [("laptop", "light"), ("wall", "dark"), ("phone", "light")]:
        page, wrong = opened(browser, link, place, scheme)
        for view in VIEWS:
            page.goto(f"{page.url.split('#')[0]}#{view}")
            section = page.locator(f"#view-{view}")
            expect(section).to_be_visible()
            expect(page.locator("main > section:visible")).to_have_count(1)
            if view == "runs":
                page.locator("#view-runs a, #view-runs p").first.wait_for()
            if view in ["shift", "trends"]:
                section.locator("polyline").first.wait_for(state="attached")
            if view == "setup":
                page.locator("#view-setup table").first.wait_for()
            if view == "events":
                page.locator("#view-events .hex").first.wait_for()
            if view == "quality":
                page.locator("#view-quality path.line, #view-quality .panel > p").first.wait_for(state="attached")
            if view == "dataflow":
                page.locator(".arrows path.way").first.wait_for(state="attached")
            shoot(page, screenshots / f"{when}-{view}-{place}-{scheme}.png", view != "setup")
            unnamed = page.evaluate(UNNAMED)
            assert unnamed == [], f"{view}: no name for screen readers: {unnamed}"
            beyond = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert beyond <= 0, f"{view} is {beyond} pixels wider than a {place}"
            faint = page.evaluate(FAINT)
            assert faint == [], f"{view}, {scheme}: too faint to read: {faint}"
        assert wrong == [], wrong
        page.close()


def opened(browser: Browser, link: str, place: str, scheme: str) -> tuple[Page, list[str]]:
    """A page of its own, and what went wrong in it: errors, and requests that leave the service."""
    width, height = PLACES[place]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    wrong: list[str] = []
    origin = link.split("/#")[0].rstrip("/")
    # A refused order is no error of the page.
    is_refusal = re.compile(r"status of 4(09|22)")
    page.on("console", lambda said: said.type == "error" and not is_refusal.search(said.text) and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: request.url.startswith(origin) or wrong.append(request.url))
    page.set_default_timeout(DEADLINE_MS)
    page.goto(link)
    expect(page.locator("#state")).not_to_have_text("")
    return page, wrong


def order(page: Page, name: str) -> None:
    button = page.get_by_role("button", name=name, exact=True)
    expect(button).to_be_enabled()
    button.click()


def state(page: Page, name: str) -> None:
    expect(page.locator("#state")).to_have_text(name)


def figure(page: Page, name: str):
    return page.locator("#view-shift dl div", has_text=name).locator("dd").first


def moves(page: Page) -> None:
    """Rates are there, and the clock and the count go on."""
    expect(figure(page, "Recorded")).to_have_text(re.compile(r"[1-9].*Hz"))
    for name in ["Time", "Events recorded"]:
        before = figure(page, name).text_content()
        expect(figure(page, name)).not_to_have_text(before)


def by_key(page: Page, view: str) -> None:
    page.locator("main").focus()
    page.keyboard.press(str(VIEWS.index(view) + 1))
    expect(page.locator(f"#view-{view}")).to_be_visible()


# Controls that have neither a label nor a text.
UNNAMED = """() => [...document.querySelectorAll("button, input, select, a, [role=img], section, table")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.ariaLabel || one.labels?.length || one.textContent.trim() || one.querySelector("title, caption")))
  .map((one) => one.outerHTML.slice(0, 80))"""

# Texts whose contrast is below what WCAG 2.2 asks for (4.5 to 1), but for what is disabled.
FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const back = (one) => {
    for (; one; one = one.parentElement) {
      const found = colour(getComputedStyle(one).backgroundColor);
      if (found[3] > 250) return found;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !one.checkVisibility() || one.closest(":disabled, svg, .skip, option")) continue;
    const [a, b] = [luminance(colour(getComputedStyle(one).color)), luminance(back(one))].sort((a, b) => b - a);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${one.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return faint;
}"""

if __name__ == "__main__":
    main()
