// Shift: how it is, and what may be ordered.

import { mayCommand, person, send } from "../api.js";
import { chart } from "../chart.js";
import { clock, el, grouped, percent, show, si, timeOfDay } from "../dom.js";
import { samples } from "../trend.js";

const sentence = el("p", { className: "sentence", ariaLive: "polite" });
const troubles = el("ul", { className: "troubles" });
const orders = el("div", { className: "orders", role: "group", ariaLabel: "Orders" });
const answer = el("p", { className: "answer", role: "status" });
const holder = el("span");
const takeOver = el("button", { type: "button", onclick: () => command(true) }, "Take over");
const giveUp = el("button", { type: "button", onclick: () => command(false) }, "Give up");
const figures = el("dl", { className: "figures" });
const said = el("ol", { className: "lines" });
const name = el("input", { maxLength: 64, required: true, value: person.name, autocomplete: "username" });
const events = el("input", { inputMode: "numeric", pattern: "[0-9]*", placeholder: "as configured" });
const duration = el("input", { placeholder: "such as 10 min" });
const size = el("input", { placeholder: "such as 10 GB" });
const runs = el("input", { inputMode: "numeric", pattern: "[1-9][0-9]*", placeholder: "1" });
const rates = chart("Events per second", [
  { name: "level 1", of: (sample) => sample.rates.level1_hz },
  { name: "built", of: (sample) => sample.rates.built_hz },
  { name: "recorded", of: (sample) => sample.rates.recorded_hz },
], (value) => si(value, "Hz"));

let status = null;
let isMine = false;

export const id = "shift";
export const title = "Shift";

export function build(root) {
  name.addEventListener("change", () => { person.name = name.value.trim(); });
  const labelled = (text, input) => el("label", {}, text, input);
  const settings = el("form", { ariaLabel: "Next run" }, labelled("Operator", name), labelled("Events", events), labelled("Duration", duration),
    labelled("Size", size), labelled("Runs", runs));
  settings.addEventListener("submit", (event) => event.preventDefault());
  root.append(sentence, troubles,
    el("div", { className: "desk" },
      el("div", { className: "panel command" }, el("h2", {}, "Command"), orders, answer,
        el("p", { className: "lock" }, holder, takeOver, giveUp), settings),
      el("div", { className: "panel" }, el("h2", {}, "Run"), figures)),
    el("div", { className: "panel" }, rates.figure),
    el("div", { className: "panel" }, el("h2", {}, "Said last"), said));
  if (!mayCommand) say("This page watches. To command, open the address that `weir serve` printed.", false);
}

export function onStatus(now) {
  status = now;
  isMine &&= now.operator?.name === person.name;
  show(sentence, now.sentence);
  sentence.className = `sentence ${now.state}`;
  troubles.replaceChildren(...(now.run?.troubles ?? []).map((text) => el("li", {}, text)));
  showOrders();
  showFigures(now);
  rates.draw(samples, 300);
}

export function onShown() { rates.draw(samples, 300); }
export function onTrend() { rates.draw(samples, 300); }

export function onMessages(messages) {
  said.replaceChildren(...messages.slice(-6).reverse().map((message) =>
    el("li", { className: message.severity }, el("time", {}, timeOfDay(message.at_ms)),
      [message.text, ...message.causes].join(", because: "))));
}

function showOrders() {
  const { verbs, operator } = status;
  const isOthers = operator !== null && !isMine && operator.name !== person.name;
  show(holder, operator ? `${operator.name} commands` : "nobody commands");
  takeOver.hidden = !mayCommand || operator === null || isMine;
  giveUp.hidden = !isMine;
  const wanted = `${verbs.join()} ${isOthers}`;
  if (orders.dataset.shown === wanted) return;
  const focused = orders.contains(document.activeElement);
  orders.dataset.shown = wanted;
  orders.replaceChildren(...verbs.map((verb, index) => el("button", {
    type: "button",
    className: verb === "force" ? "danger" : index === 0 ? "primary" : "",
    disabled: !mayCommand || isOthers,
    onclick: (event) => order(verb, event.currentTarget),
  }, verb[0].toUpperCase() + verb.slice(1))));
  // Who works with the keyboard stays where the orders are.
  if (focused) orders.querySelector("button:enabled")?.focus();
}

function showFigures({ run, last, follow }) {
  const entries = run ? [
    ["Run", run.number ?? "…"], ["Time", clock(run.elapsed_s)],
    ["Level 1", si(run.rates.level1_hz, "Hz")], ["Dead time", run.rates.dead_time === null ? "–" : percent(run.rates.dead_time)],
    ["Built", si(run.rates.built_hz, "Hz")], ["Recorded", si(run.rates.recorded_hz, "Hz")],
    ["To disk", si(run.rates.bytes_per_s, "B/s")], ["Events recorded", grouped(run.recorded)],
    ...(follow ? [["Runs that follow", grouped(follow)]] : []),
  ] : last ? [
    ["Last run", last.number ?? "none"], ["Ended", last.state], ["Events recorded", grouped(last.recorded)],
  ] : [["Run", "none yet"]];
  if (figures.children.length !== entries.length) {
    figures.replaceChildren(...entries.map(() => el("div", {}, el("dt"), el("dd"))));
  }
  entries.forEach(([key, value], index) => {
    const [dt, dd] = figures.children[index].children;
    show(dt, key);
    show(dd, String(value));
  });
}

async function order(verb, button) {
  if (!name.reportValidity()) return;
  if (verb === "force" && !confirm("End the run at once, and give up what is in hand?")) return;
  person.name = name.value.trim();
  if (button.ariaBusy) return;
  // It is not disabled: the focus of the keyboard would be lost.
  button.ariaBusy = "true";
  const run = {};
  if (verb === "start" && events.value) run.events = Number(events.value);
  if (verb === "start" && duration.value) run.duration = duration.value;
  if (verb === "start" && size.value) run.size = size.value;
  done(await send(`orders/${verb}`, verb === "start" ? { run, runs: Number(runs.value || 1) } : {}));
  button.ariaBusy = null;
}

async function command(takes) {
  if (takes && !name.reportValidity()) return;
  const answer = takes ? await send("command", { take_over: true }) : await send("command", {}, "DELETE");
  done(answer);
  isMine = takes && !("error" in answer);
  if (status) showOrders();
}

function done(answered) {
  if (!("error" in answered)) isMine = true;
  say(answered.error ?? answered.said ?? "", "error" in answered);
}

function say(text, isBad) {
  show(answer, text);
  answer.classList.toggle("bad", isBad);
}
