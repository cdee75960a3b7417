// Messages: what was said, by severity, application, run and words.

import { get } from "../api.js";
import { el, show, timeOfDay, moment } from "../dom.js";

const rows = el("ol", { className: "lines all panel" });
const count = el("p", { className: "soft", role: "status" });
const words = el("input", { type: "search", placeholder: "such as sfi-1 or stopped", oninput: draw });
const severity = el("select", { onchange: draw },
  ...[["notice", "all"], ["warning", "warnings and errors"], ["error", "errors"]].map(([value, text]) => el("option", { value }, text)));
const application = el("select", { onchange: draw });
const more = el("button", { type: "button", onclick: fetchOlder }, "older ones");
const AT_ONCE = 1000;
const ORDER = ["notice", "warning", "error"];
// Those that the service had said before the newest ones, as they were fetched; and the newest ones.
let older = [];
let isAll = false;
let messages = [];

export const id = "messages";
export const title = "Messages";

export function build(root) {
  root.append(el("form", { role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Severity", severity), el("label", {}, "Application", application), el("label", {}, "Words", words)), count, rows, more);
}

export function onMessages(newest) {
  messages = newest;
  offer();
  draw();
}

// What is further back stands in the run catalogue.
async function fetchOlder() {
  const oldest = (older[0] ?? messages[0])?.number ?? 0;
  more.disabled = true;
  try {
    const found = await get(`messages?before=${oldest}&newest=${AT_ONCE}`);
    older = [...found, ...older];
    isAll = found.length < AT_ONCE;
    offer();
    draw();
  } catch (refused) {
    count.textContent = `Older ones did not come: ${refused.message}`;
  } finally {
    more.disabled = false;
  }
}

// Those that were fetched, and the newest ones; some may be among both.
function all() {
  const first = messages[0]?.number ?? Infinity;
  return [...older.filter(({ number }) => number < first), ...messages];
}

// Those that something was said of.
function offer() {
  const names = ["all", ...[...new Set(all().map((message) => message.application).filter(Boolean))].sort()];
  const offered = [...application.options].map((option) => option.value);
  if (names.join() === offered.join()) return;
  const chosen = names.includes(application.value) ? application.value : "all";
  application.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  application.value = chosen;
}

function draw() {
  const least = ORDER.indexOf(severity.value);
  const sought = words.value.trim().toLowerCase();
  const isSought = (message) => ORDER.indexOf(message.severity) >= least
    && (application.value === "all" || message.application === application.value)
    && [message.run ? `run ${message.run}` : "", message.text, ...message.causes].join(" ").toLowerCase().includes(sought);
  const said = all();
  more.hidden = isAll || !(said[0]?.number > 1);
  const found = said.filter(isSought);
  show(count, found.length === said.length ? `${found.length} messages` : `${found.length} of ${said.length} messages`);
  rows.replaceChildren(...found.reverse().map((message) => el("li", { className: message.severity },
    el("time", { title: moment(message.at_ms) }, timeOfDay(message.at_ms)),
    el("span", { className: "badge" }, message.severity),
    message.run ? el("a", { href: `#runs/${message.run}` }, `run ${message.run}`) : null,
    el("span", {}, message.text),
    message.repeats ? el("span", { className: "badge", title: `last at ${moment(message.last_ms)}` }, `${message.repeats + 1} times`) : null,
    message.causes.length ? el("span", { className: "soft" }, `because: ${message.causes.join(", because: ")}`) : null)));
}
