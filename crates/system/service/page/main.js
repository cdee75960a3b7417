// The page of a partition: hands what the service says to the views, and shows the one that the address names.

import { get, listen } from "./api.js";
import { clock, el, show } from "./dom.js";
import { fetchTrend, note } from "./trend.js";
import * as dataflow from "./views/dataflow.js";
import * as events from "./views/events.js";
import * as messages from "./views/messages.js";
import * as quality from "./views/quality.js";
import * as runs from "./views/runs.js";
import * as setup from "./views/setup.js";
import * as shift from "./views/shift.js";
import * as trends from "./views/trends.js";

const views = [shift, dataflow, events, quality, trends, messages, runs, setup];
const $ = (id) => document.getElementById(id);
const said = [];
const SAID_KEPT = 1000;
let shown = null;

for (const view of views) {
  const root = el("section", { id: `view-${view.id}`, ariaLabel: view.title, hidden: true });
  view.build(root);
  $("views").append(root);
}
const links = views.map(({ id, title }, index) => el("a", { href: `#${id}`, title: `${title} (key ${index + 1})` }, title));
$("nav").append(...links);
addEventListener("hashchange", route);
addEventListener("keydown", chooseByKey);
listen({ status: onStatus, message: onMessage, connected: onConnected });
route();

function route() {
  const [name, argument] = location.hash.slice(1).split("/");
  const view = views.find(({ id }) => id === name) ?? shift;
  if (shown && shown !== view) {
    $(`view-${shown.id}`).hidden = true;
    shown.onHidden?.();
  }
  shown = view;
  $(`view-${view.id}`).hidden = false;
  links.forEach((link, index) => {
    if (views[index] === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  view.onShown?.(argument);
}

// 1 to 8 choose a view, unless somebody writes.
function chooseByKey(event) {
  const view = views[Number(event.key) - 1];
  const writes = event.target.closest?.("input, select, textarea");
  if (!view || writes || event.ctrlKey || event.altKey || event.metaKey) return;
  location.hash = view.id;
  $("views").focus();
}

function onStatus(status) {
  note(status);
  const run = status.run?.number ? ` · run ${status.run.number}` : "";
  document.title = `${status.state}${run} · ${status.partition}`;
  show($("partition"), status.partition);
  show($("state"), status.state);
  $("state").className = `state ${status.state}`;
  show($("clock"), status.run ? `run ${status.run.number ?? "…"} · ${clock(status.run.elapsed_s)}` : "");
  $("alarms").hidden = !status.alarms;
  show($("alarms"), `${status.alarms} alarm${status.alarms === 1 ? "" : "s"}`);
  show($("operator"), status.operator ? `${status.operator.name} commands` : "nobody commands");
  for (const view of views) view.onStatus?.(status, view === shown);
}

function onMessage(message) {
  // One may come while all are fetched, and what is said again keeps its number.
  const place = said.findIndex(({ number }) => number === message.number);
  if (place >= 0) said[place] = message;
  else said.push(message);
  if (said.length > SAID_KEPT) said.shift();
  for (const view of views) view.onMessages?.(said);
}

async function onConnected(isConnected) {
  $("lost").hidden = isConnected;
  if (!isConnected) return;
  const [all] = await Promise.all([get("messages"), fetchTrend()]);
  said.splice(0, said.length, ...all);
  for (const view of views) {
    view.onMessages?.(said);
    view.onTrend?.();
  }
}
