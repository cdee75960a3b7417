// Events: what applications have shown, one event as a tree of its fragments, and the bytes of one of them.

import { get, raw } from "../api.js";
import { el, grouped, moment, show, si, table, timeOfDay } from "../dom.js";

const KEPT = 100;
const ROW = 16;
const ROWS = 64;
const list = el("div", { className: "panel scroll tall", tabIndex: 0, ariaLabel: "Sampled events" });
const sheet = el("div", { className: "sheet" });
const parts = el("div", { className: "two" });
const stage = el("select", { onchange: drawList },
  ...[["", "all"], ["ros", "read-out systems"], ["ebif", "read-out crates"], ["sfi", "event builders"], ["efd", "event filter"]].map(([value, text]) => el("option", { value }, text)));
const follows = el("input", { type: "checkbox", checked: true, onchange: () => follows.checked && openNewest() });
const count = el("p", { className: "soft", role: "status" });
let samples = [];
let opened = null;
let source = null;
let drawing = null;
// The newest of what is shown, and of what is opened: what was asked for before comes too late.
let visit = 0;
let ticket = 0;

export const id = "events";
export const title = "Events";

export function build(root) {
  root.append(el("form", { onsubmit: (event) => event.preventDefault() }, el("label", {}, "Shown by", stage),
    el("label", { className: "beside" }, follows, "Open the newest as it comes")), count, el("div", { className: "two" }, list, sheet), parts);
  // Whoever looks into an event keeps it.
  for (const kind of ["pointerdown", "keydown"]) parts.addEventListener(kind, () => { follows.checked = false; });
}

export async function onShown(argument) {
  if (argument) follows.checked = false;
  listen();
  const mine = visit += 1;
  await fetchAll();
  if (mine !== visit) return;
  if (argument) await open(Number(argument));
  else if (opened === null || follows.checked) await openNewest();
}

export function onHidden() {
  visit += 1;
  source?.close();
  source = null;
  clearTimeout(drawing);
  drawing = null;
}

// Who does not look is not told.
function listen() {
  if (source) return;
  source = new EventSource("api/samples/events");
  source.onopen = fetchAll;
  source.addEventListener("missed", fetchAll);
  source.addEventListener("sample", (event) => {
    add([JSON.parse(event.data)]);
    // Many may come at a time, and people read one a second.
    drawing ??= setTimeout(() => {
      drawing = null;
      drawList();
      if (follows.checked) openNewest();
    }, 1000);
  });
}

addEventListener("pagehide", onHidden);

async function fetchAll() {
  add(await get("samples"));
  drawList();
}

// What comes while all are fetched comes twice. A service that was started again counts from 1.
function add(some) {
  const isAnew = some.length && samples.length && some.at(-1).number < samples[0].number;
  const before = isAnew ? [] : samples;
  const byNumber = new Map([...before, ...some].map((sample) => [sample.number, sample]));
  samples = [...byNumber.values()].sort((a, b) => a.number - b.number).slice(-KEPT);
}

function found() {
  return samples.filter((sample) => !stage.value || sample.stage === stage.value);
}

async function openNewest() {
  const newest = found().at(-1);
  if (newest) return open(newest.number);
  parts.replaceChildren();
  sheet.replaceChildren(el("p", { className: "soft" }, "No event was shown yet. Samples come while a run goes on; sampling in the configuration says which."));
}

function drawList() {
  const some = found();
  show(count, `The newest ${grouped(some.length)} sampled events`);
  const rows = some.slice().reverse().map((sample) => [
    el("a", { href: `#events/${sample.number}`, ariaCurrent: sample.number === opened ? "true" : null, title: `sample ${sample.number}` }, grouped(sample.event)),
    el("time", { title: moment(sample.at_ms) }, timeOfDay(sample.at_ms)), sample.run === null ? "–" : String(sample.run), sample.application,
    hex(sample.trigger_type, 2), si(sample.bytes, "B"), sample.incomplete ? el("span", { className: "badge incomplete" }, "incomplete") : "",
  ]);
  // Whoever is in the list by keyboard stays there.
  const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  list.replaceChildren(rows.length ? table(["#event", "shown", "#run", "by", "trigger", "#size", ""], rows, "Sampled events, the newest first")
    : el("p", { className: "soft" }, "None."));
  if (focused) list.querySelector(`[href="${focused}"]`)?.focus();
}

async function open(number) {
  const mine = ticket += 1;
  let event, bytes;
  try {
    [event, bytes] = await Promise.all([get(`samples/${number}`), raw(`samples/${number}/raw`)]);
  } catch (error) {
    if (mine !== ticket) return;
    parts.replaceChildren();
    return sheet.replaceChildren(el("p", { className: "bad" }, error.message));
  }
  if (mine !== ticket) return;
  opened = number;
  drawList();
  const bytesOf = hexDump();
  const { header, problems, readout } = event.tree;
  const isAt = (part) => bytesOf.show(part.name, bytes, part.offset, part.bytes, part.decoded);
  sheet.replaceChildren(
    el("section", { className: "panel", ariaLabel: "Event" }, el("h2", {}, `Event ${grouped(event.event)} `, ...(event.incomplete ? [el("span", { className: "badge incomplete" }, "incomplete")] : [])),
      el("p", { className: "soft" }, `${event.application} has shown it ${moment(event.at_ms)}, ${grouped(event.bytes)} bytes. `,
        el("a", { href: `api/samples/${number}/file`, download: "" }, "Save as a file")),
      ...(problems.length ? [el("ul", { className: "lines bad" }, ...problems.map((problem) => el("li", {}, problem)))] : []),
      header ? facts(header) : el("p", { className: "bad" }, "Its header cannot be read.")));
  parts.replaceChildren(
    el("section", { className: "panel tall", ariaLabel: "Fragments" }, el("h2", {}, "Fragments"), tree(header, readout, isAt)), bytesOf.panel);
  const first = readout[0]?.robs[0];
  if (first) isAt(robPart(first));
}

function facts(header) {
  const time = new Date(1000 * header.seconds + header.nanoseconds / 1e6);
  const rows = [
    ["run", `${header.run} (${header.run_type})`], ["lumi block", header.lumi_block], ["level-1 id", hex(header.level1_id, 8)],
    ["bunch crossing", header.bcid], ["trigger type", hex(header.trigger_type, 2)], ["time", `${moment(time)}.${String(header.nanoseconds).padStart(9, "0")}`],
    ["status", header.status.join(" ")], ["streams", header.streams.join(", ") || "none"], ["level-1 info", header.level1_info.join(" ") || "none"],
    ["level-2 info", header.level2_info.join(" ") || "none"], ["event-filter info", header.filter_info.join(" ") || "none"],
  ];
  return el("dl", { className: "facts" }, ...rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));
}

// A list of lists, which browsers and screen readers know how to open and to go through.
function tree(header, readout, isAt) {
  const fragment = (part, words) => el("button", { className: "fragment", onclick: () => isAt(part) }, ...words);
  const top = header ? [el("li", {}, fragment({ name: "Header of the event", offset: 0, bytes: header.bytes, decoded: [] }, ["Header of the event", size(header.bytes)]))] : [];
  const branches = readout.map((branch, index) => el("li", {}, el("details", { open: index < 1 },
    el("summary", {}, el("b", {}, branch.name), el("span", { className: "soft" }, ` ${branch.robs.length} fragment${branch.robs.length === 1 ? "" : "s"}, ${si(branch.bytes, "B")}`)),
    el("ul", {}, ...branch.robs.map((rob) => el("li", {}, fragment(robPart(rob), robWords(rob))))))));
  return el("ul", { className: "tree" }, ...top, ...branches);
}

function robWords(rob) {
  const is = rob.lost ? "lost" : rob.problem ? "damaged" : rob.status.some((word) => Number(word)) ? "flagged" : null;
  return [el("code", {}, rob.source_id), rob.detector ? el("span", {}, rob.detector) : null, size(rob.bytes), is ? el("span", { className: `badge ${is}` }, is) : null].filter(Boolean);
}

function robPart(rob) {
  const said = rob.rod ? [
    ["level-1 id", hex(rob.rod.level1_id, 8)], ["bunch crossing", rob.rod.bcid], ["trigger type", hex(rob.rod.trigger_type, 2)],
    ["run", rob.rod.run], ["event type", hex(rob.rod.event_type, 8)], ["status of the ROB", rob.status.join(" ") || "none"],
    ["status of the ROD", rob.rod.status.join(" ") || "none"], ["data words", rob.rod.data_words], ["data begin at byte", rob.rod.data_offset - rob.offset], ...rob.rod.decoded,
  ] : [["status of the ROB", rob.status.join(" ") || "none"], ["what is wrong", rob.problem ?? "nothing"]];
  return { name: `ROB ${rob.source_id}${rob.detector ? ` (${rob.detector})` : ""}`, offset: rob.offset, bytes: rob.bytes, decoded: said };
}

// The bytes of a fragment as little-endian words, page by page.
function hexDump() {
  const heading = el("h2", { className: "plain" });
  const place = el("div", {});
  const panel = el("section", { className: "panel", ariaLabel: "Bytes" }, heading, place);
  function showPart(name, bytes, offset, length, decoded, from = 0) {
    show(heading, name);
    const part = bytes.subarray(offset, offset + length);
    const to = Math.min(length, from + ROW * ROWS);
    const turn = (at, words) => el("button", { disabled: at < 0 || at >= length, onclick: () => showPart(name, bytes, offset, length, decoded, at) }, words);
    place.replaceChildren(
      decoded.length ? el("dl", { className: "facts" }, ...decoded.map(([what, value]) => el("div", {}, el("dt", {}, what), el("dd", {}, String(value))))) : "",
      el("pre", { tabIndex: 0, ariaLabel: `Bytes of ${name}`, className: "hex" }, rows(part, from, to)),
      length > ROW * ROWS ? el("p", { className: "orders" }, turn(from - ROW * ROWS, "Before"), turn(from + ROW * ROWS, "Behind"),
        el("span", { className: "soft", role: "status" }, `bytes ${grouped(from)} to ${grouped(to - 1)} of ${grouped(length)}`)) : "");
  }
  return { panel, show: showPart };
}

function rows(part, from, to) {
  const lines = [];
  for (let at = from; at < to; at += ROW) {
    const bytes = part.subarray(at, Math.min(at + ROW, to));
    const words = [];
    for (let byte = 0; byte < bytes.length; byte += 4) {
      words.push([...bytes.subarray(byte, byte + 4)].reverse().map((one) => one.toString(16).padStart(2, "0")).join(""));
    }
    const text = [...bytes].map((one) => one >= 0x20 && one < 0x7f ? String.fromCharCode(one) : "·").join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${words.join(" ").padEnd(36)} ${text}`);
  }
  return lines.join("\n");
}

function size(bytes) {
  return el("span", { className: "soft" }, `${grouped(bytes)} bytes`);
}

function hex(number, digits) {
  return `0x${number.toString(16).padStart(digits, "0")}`;
}
