// Messages: what was said, by severity, application, run and words.

import { el, show, timeOfDay, moment } from "../dom.js";

const rows = el("ol", { className: "lines all panel" });
const count = el("p", { className: "soft", role: "status" });
const words = el("input", { type: "search", placeholder: "such as sfi-1 or stopped", oninput: draw });
const severity = el("select", { onchange: draw },
  ...[["notice", "all"], ["warning", "warnings and errors"], ["error", "errors"]].map(([value, text]) => el("option", { value }, text)));
const application = el("select", { onchange: draw });
const ORDER = ["notice", "warning", "error"];
let messages = [];

export const id = "messages";
export const title = "Messages";

export function build(root) {
  root.append(el("form", { role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Severity", severity), el("label", {}, "Application", application), el("label", {}, "Words", words)), count, rows);
}

export function onMessages(all) {
  messages = all;
  offer();
  draw();
}

// Those that something was said of.
function offer() {
  const names = ["all", ...[...new Set(messages.map((message) => message.application).filter(Boolean))].sort()];
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
    && `${message.run ? `run ${message.run} ` : ""}${message.text}`.toLowerCase().includes(sought);
  const found = messages.filter(isSought);
  show(count, found.length === messages.length ? `${found.length} messages` : `${found.length} of ${messages.length} messages`);
  rows.replaceChildren(...found.reverse().map((message) => el("li", { className: message.severity },
    el("time", { title: moment(message.at_ms) }, timeOfDay(message.at_ms)),
    el("span", { className: "badge" }, message.severity),
    message.run ? el("a", { href: `#runs/${message.run}` }, `run ${message.run}`) : null,
    el("span", {}, message.text),
    message.repeats ? el("span", { className: "badge", title: `last at ${moment(message.last_ms)}` }, `${message.repeats + 1} times`) : null,
    message.causes.length ? el("span", { className: "soft" }, `because: ${message.causes.join(", because: ")}`) : null)));
}
