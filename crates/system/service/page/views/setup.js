// Set-up: the configuration as a form with what each key means, what the check finds, and what a simulation foretells.

import { get, mayCommand, send } from "../api.js";
import { el, grouped, percent, show, si, table } from "../dom.js";

const findings = el("div", { role: "status" });
const changes = new Map();
const changed = el("ul", { className: "lines", ariaLabel: "Changed keys" });
const another = el("input", { className: "long", placeholder: "such as pt.count=4", autocomplete: "off" });
const checkButton = el("button", { onclick: () => ask("check") }, "Check");
const forecastButton = el("button", { className: "primary", onclick: () => ask("forecast") }, "Forecast");
const answer = el("p", { className: "answer", role: "status" });
const result = el("div", {});
const sought = el("input", { type: "search", className: "long", placeholder: "a key or a word, such as pages", oninput: draw });
const isSet = el("input", { type: "checkbox", onchange: draw });
const tables = el("div");
const toml = el("pre", { tabIndex: 0, ariaLabel: "Configuration as TOML" });
let keys = null;
// Of the newest question: what answers an older one is not shown.
let ticket = 0;

export const id = "setup";
export const title = "Set-up";

export function build(root) {
  root.append(
    el("section", { className: "panel", ariaLabel: "Changes" }, findings, el("h2", {}, "What would happen if"),
      el("form", { onsubmit: addAnother }, el("label", {}, "Another key", another), el("button", {}, "Add")),
      el("p", { className: "orders" }, checkButton, forecastButton),
      changed, answer, result,
      el("p", { className: "soft" }, "Nothing changes in this partition. Change values below; save the configuration, and give it to the service between two runs: weir ctl configure FILE.")),
    el("form", { role: "search", onsubmit: (event) => event.preventDefault() },
      el("label", {}, "Find", sought), el("label", { className: "beside" }, isSet, "only what differs from its default")),
    tables, el("details", {}, el("summary", {}, "The whole configuration as TOML, as `weir run` takes it"), toml));
}

// Another configuration may be in force by now.
let edition = 0;
export function onStatus(status, isShown) {
  if (status.configured === edition) return;
  edition = status.configured;
  keys = null;
  if (isShown) onShown();
}

export async function onShown() {
  if (keys) return;
  const [configuration, schema] = await Promise.all([get("configuration"), get("schema")]);
  toml.textContent = configuration.toml;
  keys = flat(configuration.value, schema, schema, "");
  findings.replaceChildren(...(configuration.warnings.length
    ? [el("h2", {}, "The check warns"), lines(configuration.warnings, "warning")]
    : [el("p", { className: "good" }, "✓ The check has found nothing wrong.")]));
  draw();
  drawChanges();
}

// All keys with values, the deepest ones alone: their dotted names, and what the schema says of them.
function flat(value, node, schema, name) {
  const known = resolved(node, schema);
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([key, inner]) =>
      flat(inner, known?.properties?.[key] ?? known?.additionalProperties ?? {}, schema, name ? `${name}.${key}` : key));
  }
  if (value === null) return [];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const standard = node.default ?? known?.default;
  const differs = standard === undefined || JSON.stringify(standard) !== JSON.stringify(value);
  return [{ name, text, differs, words: node.description ?? known?.description ?? "", choices: choices(value, known) }];
}

// The values that a key can have, if there are few.
function choices(value, known) {
  if (typeof value === "boolean") return ["true", "false"];
  const named = known?.enum ?? known?.oneOf?.map((one) => one.const ?? one.enum?.[0]);
  return named?.every((one) => typeof one === "string") ? named : null;
}

function resolved(node, schema) {
  const inner = node?.$ref ?? node?.allOf?.[0]?.$ref ?? node?.anyOf?.find((one) => one.$ref)?.$ref;
  if (!inner) return node;
  return inner.replace("#/", "").split("/").reduce((at, key) => at?.[key], schema);
}

function draw() {
  if (!keys) return;
  const word = sought.value.trim().toLowerCase();
  const found = keys.filter(({ name, words, differs }) => `${name} ${words}`.toLowerCase().includes(word) && (differs || !isSet.checked));
  const groups = Map.groupBy(found, ({ name }) => name.includes(".") ? name.split(".")[0] : "");
  const code = (text) => [...text.split("`").entries()].map(([index, part]) => index % 2 ? el("code", {}, part) : part);
  tables.replaceChildren(...[...groups].map(([group, members]) => el("section", { className: "panel", ariaLabel: group || "general" },
    el("h2", {}, group ? el("code", {}, `[${group}]`) : "general"),
    table(["key", "value", "meaning"], members.map((key) => [
      el("code", {}, group ? key.name.slice(group.length + 1) : key.name), field(key), el("span", {}, ...code(key.words)),
    ]), `Keys of ${group}`))));
  if (!found.length) tables.append(el("p", { className: "soft" }, "No key has this word."));
}

function field({ name, text, differs, choices }) {
  const value = changes.get(name) ?? text;
  const onchange = (event) => {
    change(name, event.target.value, text);
    event.target.className = look(name, differs);
  };
  const all = choices && !choices.includes(value) ? [value, ...choices] : choices;
  const attributes = { ariaLabel: name, onchange, className: look(name, differs) };
  if (!all) return el("input", { ...attributes, value, autocomplete: "off" });
  const made = el("select", attributes, ...all.map((choice) => el("option", { value: choice }, choice)));
  made.value = value;
  return made;
}

function look(name, differs) {
  return changes.has(name) ? "field changed" : differs ? "field differs" : "field";
}

function change(name, value, former) {
  if (value === former) changes.delete(name);
  else changes.set(name, value);
  drawChanges();
}

function undo(name) {
  changes.delete(name);
  draw();
  drawChanges();
}

function addAnother(event) {
  event.preventDefault();
  const [name, ...value] = another.value.split("=");
  if (!value.length) return say("expected key=value, such as pt.count=4", true);
  change(name.trim(), value.join("=").trim(), keys?.find((key) => key.name === name.trim())?.text);
  another.value = "";
  draw();
}

function drawChanges() {
  changed.replaceChildren(...[...changes].map(([name, value]) => el("li", {}, el("code", {}, `${name} = ${value} `),
    el("button", { ariaLabel: `Undo ${name}`, onclick: () => undo(name) }, "Undo"))));
  ticket += 1;
  for (const button of [checkButton, forecastButton]) button.disabled = !mayCommand;
  result.replaceChildren();
  say(mayCommand ? "" : "This page watches: open the address that weir serve printed to check and to simulate.");
}

async function ask(what) {
  const mine = ticket += 1;
  say(what === "forecast" ? "A run is being simulated …" : "");
  for (const button of [checkButton, forecastButton]) button.disabled = true;
  const told = await send(what, { set: [...changes].map(([name, value]) => `${name}=${value}`) });
  if (mine !== ticket) return;
  for (const button of [checkButton, forecastButton]) button.disabled = false;
  result.replaceChildren();
  if (told.error) return say(told.error, true);
  const { errors, warnings, toml } = told.checked ?? told;
  say(errors.length ? "This machine cannot run it." : "✓ It can be run.", errors.length > 0);
  const file = URL.createObjectURL(new Blob([toml], { type: "application/toml" }));
  result.replaceChildren(lines(errors, "error"), lines(warnings, "warning"), ...(told.summary ? foretold(told) : []),
    el("p", {}, el("a", { href: file, download: "partition.toml" }, "Save the configuration")));
}

function foretold({ summary, notes }) {
  const rate = (value) => si(value, "Hz");
  const figures = [
    ["level 1", rate(summary.rates_hz.level1)], ["built", rate(summary.rates_hz.built)], ["recorded", rate(summary.rates_hz.recorded)],
    ["to disk", si(summary.throughput_bytes_per_s.recorded, "B/s")], ["dead time", percent(summary.dead_time_fraction)],
    ["build latency, 99 %", summary.latency_ns.build ? `${(summary.latency_ns.build.p99 / 1e6).toPrecision(3)} ms` : "–"], ["events", grouped(summary.accounting.level1)], ["state", summary.state],
  ];
  const waits = [...summary.blocked_by].sort((a, b) => b.fraction - a.fraction).slice(0, 5);
  return [
    el("section", { ariaLabel: "Forecast" }, el("h2", {}, "Forecast"),
      el("dl", { className: "facts" }, ...figures.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      waits.length ? table(["who", "waits for", "because", "#of the time"], waits.map(({ who, by, cause, fraction }) => [who, by, cause, percent(fraction)]), "Who would wait for whom") : ""),
    lines(notes, "soft"),
  ];
}

function lines(texts, kind) {
  return texts.length ? el("ul", { className: "lines" }, ...texts.map((text) => el("li", { className: kind }, text))) : "";
}

function say(text, isBad = false) {
  show(answer, text);
  answer.className = isBad ? "answer bad" : "answer";
}
