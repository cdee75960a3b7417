// Quality: histograms of the run beside their references, those that differ first.

import { bars } from "../bars.js";
import { get } from "../api.js";
import { el, grouped, moment, show, table, timeOfDay } from "../dom.js";

const AGAIN_MS = 2000;
const said = el("p", { role: "status" });
const list = el("div", { className: "panel scroll tall", tabIndex: 0, ariaLabel: "Histograms" });
const drawn = bars();
const facts = el("dl", { className: "facts" });
const words = el("p", {});
const sheet = el("section", { className: "panel", ariaLabel: "Histogram", hidden: true }, drawn.figure, words, facts);
let heads = [];
let opened = null;
let chosen = false;
let again = null;
let ticket = 0;

export const id = "quality";
export const title = "Quality";

export function build(root) {
  root.append(said, el("div", { className: "two" }, list, sheet),
    el("p", { className: "soft" }, "This run is what later ones should look like? ",
      el("a", { href: "api/references", download: "references.json" }, "Save its histograms as references"),
      ", and name the file in the configuration: control.references."));
}

export function onShown(argument) {
  chosen = Boolean(argument);
  if (argument) opened = decodeURIComponent(argument);
  refresh();
}

export function onHidden() {
  clearTimeout(again);
  again = null;
}

async function refresh() {
  clearTimeout(again);
  again = setTimeout(refresh, AGAIN_MS);
  try {
    heads = await get("histograms");
    const isThere = heads.some(({ name }) => name === opened);
    if (!isThere || !chosen && worst()?.alarm) opened = worst()?.name ?? null;
    drawList();
    await open();
  } catch (error) {
    show(said, error.message);
    said.className = "bad";
  }
}

// Those that differ first, and of the others the names in order.
function sorted() {
  return [...heads].sort((a, b) => b.alarm - a.alarm || a.name.localeCompare(b.name));
}

function worst() {
  return sorted()[0];
}

function drawList() {
  const alarms = heads.filter(({ alarm }) => alarm).length;
  const compared = heads.filter(({ comparison }) => comparison).length;
  show(said, !heads.length ? "No histogram was filled yet. The system fills some from sampled events; monitoring tasks add theirs."
    : alarms ? `${alarms} of ${heads.length} histograms differ${alarms === 1 ? "s" : ""} from the reference by more than chance explains`
    : compared ? `${compared} of ${heads.length} histograms were compared, and agree with their references` : `${heads.length} histograms, none with a reference`);
  said.className = alarms ? "bad" : "soft";
  const rows = sorted().map((head) => [
    el("a", { href: `#quality/${encodeURIComponent(head.name)}`, ariaCurrent: head.name === opened ? "true" : null }, head.title || head.name),
    head.by, grouped(Math.round(head.entries)), badge(head), el("time", { title: moment(head.at_ms) }, timeOfDay(head.at_ms)),
  ]);
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  list.replaceChildren(rows.length ? table(["histogram", "by", "#entries", "reference", "came"], rows, "Histograms, those that differ first")
    : el("p", { className: "soft" }, "None."));
  if (focused) list.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

function badge({ alarm, comparison, problem }) {
  const [kind, text] = alarm ? ["alarm", "differs"] : problem ? ["problem", "other bins"] : comparison ? ["agrees", "agrees"] : ["none", "none yet"];
  return el("span", { className: `badge ${kind}` }, text);
}

async function open() {
  const mine = ticket += 1;
  if (opened === null) {
    sheet.hidden = true;
    return;
  }
  const told = await get(`histograms/${encodeURIComponent(opened)}`);
  // Another one was opened meanwhile.
  if (mine !== ticket) return;
  const { histogram, reference, comparison, problem, alarm, by, at_ms, run, entries } = told;
  // It is drawn as wide as it is shown.
  sheet.hidden = false;
  drawn.draw(histogram, reference);
  show(words, problem ?? (comparison ? `${alarm ? "Differs from" : "Agrees with"} its reference: histograms of one shape differ as much in ${share(comparison.probability)} of all cases.`
    : reference ? "Too few entries for a comparison yet." : "There is no reference."));
  words.className = alarm || problem ? "bad" : "soft";
  const rows = [["name", histogram.name], ["filled by", by], ["run", run ?? "–"], ["last", moment(at_ms)], ["entries", grouped(Math.round(entries))],
    ["below, above", histogram.outside.map((count) => grouped(Math.round(count))).join(", ")],
    ...(comparison ? [["test", comparison.test === "chi2" ? "χ² of shapes" : "Kolmogorov–Smirnov"], [comparison.test === "chi2" ? "χ² per degree of freedom" : "distance", comparison.distance.toPrecision(3)]] : [])];
  facts.replaceChildren(...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
}

function share(probability) {
  if (probability < 1e-300) return "practically none";
  return probability >= 1e-3 ? `${(100 * probability).toPrecision(2)}\u00a0%` : probability.toExponential(0).replace("e-", "\u00a0·\u00a010⁻").replace(/\d+$/, raised);
}

function raised(digits) {
  return [...digits].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}
