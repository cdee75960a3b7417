// The sources that send by themselves: a row for each, with what is wrong.

import { el, grouped, si, table } from "./dom.js";

const HEADINGS = ["Source", "State", "#Fragments", "#Bytes", "#Last number", "#In buffers", "#Missing", "Dropped", "Clock beside the triggers", "Says"];
const DROPPED = [["late", "late"], ["doubled", "doubled"], ["unplaced", "unplaced"], ["never triggered", "never_triggered"], ["damaged", "damaged"]];

/** A table of all. */
export function sourceTable(sources) {
  return table(HEADINGS, sources.map(row), "Sources");
}

function row(source) {
  const name = el("span", { title: `${source.application}, fragments: ${grouped(source.fragments)}, bytes: ${grouped(source.bytes)}` }, source.name);
  return [
    name, state(source), si(source.fragments_hz, "Hz"), si(source.bytes_per_s, "B/s"),
    el("span", { title: source.last_time_ns ? `${grouped(source.last_time_ns)} ns` : "" }, grouped(source.last_number)),
    grouped(source.in_buffers), grouped(source.missing), dropped(source), clock(source.clock), source.status,
  ];
}

function state({ state, played, lost }) {
  const badge = el("span", { className: `badge ${state}` }, state);
  const playedBy = played ? el("small", {}, ` played (${played})`) : null;
  const often = lost ? el("small", {}, ` lost ${lost} ×`) : null;
  return el("span", {}, badge, playedBy, often);
}

// By cause; frames of a device that did not become fragments with them.
function dropped(source) {
  const causes = DROPPED.map(([words, key]) => [words, source[key]]);
  const frames = Object.entries(source.device).map(([cause, count]) => [`frames ${cause}`, count]);
  return [...causes, ...frames].filter(([, count]) => count).map(([words, count]) => `${grouped(count)} ${words}`).join(", ");
}

function clock(found) {
  if (!found) return "";
  const { offset_ns, drift_ppt, quality_ns, steps, slips, slipped_at, shift } = found;
  const parts = [`${signed(offset_ns, nanoseconds)}, ${signed(drift_ppt, (ppt) => `${(ppt / 1e6).toFixed(3)} ppm`)} ± ${nanoseconds(quality_ns)}`];
  if (steps) parts.push(`stepped ${grouped(steps)} ×`);
  const slip = slips ? el("b", { className: "bad" }, `, slipped ${grouped(slips)} ×, last at event ${grouped(slipped_at)} (${signed(shift, String)})`) : null;
  return el("span", {}, parts.join(", "), slip);
}

// Such as 12 ns, 3.45 µs or 1 700 s.
function nanoseconds(ns) {
  const [unit, length] = [["s", 1e9], ["ms", 1e6], ["µs", 1e3]].find(([, length]) => ns >= length) ?? ["ns", 1];
  const value = ns / length;
  return `${value >= 100 || length === 1 ? grouped(Math.round(value)) : value.toPrecision(3)}\u00a0${unit}`;
}

const signed = (value, words) => `${value < 0 ? "−" : "+"}${words(Math.abs(value))}`;
