// Dataflow: who gives to whom, how fast, what is in hand, and who waits for whom.

import { get } from "../api.js";
import { el, grouped, percent, show, si, svg } from "../dom.js";
import { sourceTable } from "../sources.js";

// Columns follow an event; the selection stands above, the data below.
const PLACES = {
  level1: [1, 1, 3], l2sv: [2, 1], l2pu: [3, 1], pros: [3, 2], trg: [2, 2], ros: [2, 3], ebif: [3, 3], dfm: [4, 1], sfi: [5, 2, 2], efd: [6, 2, 2], sfo: [7, 2, 2],
};
const NAMED = 12;

const arrows = svg("svg", { class: "arrows", "aria-hidden": "true" });
const cards = el("div", { className: "cards" });
const flow = el("div", { className: "flow" }, arrows, cards);
const waits = el("ol", { className: "lines" });
const sources = el("section", { className: "panel scroll", ariaLabel: "Sources", hidden: true }, el("h2", {}, "Sources"), el("div"));
const sentence = el("p", { className: "sentence" });
let timer = null;
let drawn = null;

export const id = "dataflow";
export const title = "Dataflow";

export function build(root) {
  root.append(sentence, el("div", { className: "panel scroll" }, flow), sources,
    el("div", { className: "panel" }, el("h2", {}, "Who waits for whom, now"), waits));
  new ResizeObserver(() => drawn && drawArrows(drawn)).observe(cards);
}

export function onShown() {
  refresh();
  timer ??= setInterval(refresh, 1000);
}

export function onHidden() {
  clearInterval(timer);
  timer = null;
}

export function onStatus(status) {
  show(sentence, status.sentence);
  sentence.className = `sentence ${status.state}`;
}

async function refresh() {
  if (document.hidden) return;
  try {
    drawn = await get("dataflow");
  } catch {
    return; // The page says that there is no connection.
  }
  drawCards(drawn);
  drawArrows(drawn);
  drawWaits(drawn);
  sources.hidden = !drawn.sources.length;
  sources.lastChild.replaceChildren(sourceTable(drawn.sources));
}

function drawCards({ stages }) {
  const ids = stages.map(({ role, applications }) => `${role}${applications.length}`).join();
  if (cards.dataset.shown !== ids) {
    cards.dataset.shown = ids;
    cards.replaceChildren(...stages.map(card));
  }
  for (const { role, rate_hz, in_hand, applications } of stages) {
    const made = cards.querySelector(`[data-role=${role}]`);
    show(made.querySelector(".rate"), si(rate_hz, "Hz"));
    show(made.querySelector(".hand"), in_hand === null ? "" : `${grouped(in_hand)} in hand`);
    const most = Math.max(1, ...applications.map((application) => application.in_hand ?? 0));
    const blocked = applications.flatMap((application) => application.waits);
    made.classList.toggle("blocked", blocked.some(({ share }) => share > 0.1));
    made.classList.toggle("silent", applications.some(isSilent));
    applications.slice(0, NAMED).forEach((application, index) => {
      const row = made.querySelectorAll(".application")[index];
      show(row.children[0], application.name);
      show(row.children[1], isSilent(application) ? `silent for ${application.silent_s.toFixed(0)} s` : si(application.rate_hz, "Hz"));
      row.children[2].hidden = application.in_hand === null;
      row.children[2].value = (application.in_hand ?? 0) / most;
      row.title = Object.entries(application.counts).filter(([, count]) => count).map(([key, count]) => `${key.replaceAll("_", " ")}: ${grouped(count)}`).join("\n");
      row.classList.toggle("blocked", application.waits.some(({ share }) => share > 0.1));
      row.classList.toggle("silent", isSilent(application));
    });
  }
}

// It lives and does not answer run control.
function isSilent({ silent_s }) {
  return silent_s !== null;
}

function card({ role, name, unit, applications }) {
  const [column, row, span] = PLACES[role] ?? [1, 3];
  const made = el("section", { className: "card", ariaLabel: name });
  made.dataset.role = role;
  made.style.gridArea = `${row} / ${column} / span ${span ?? 1}`;
  made.append(el("h3", {}, name, el("small", {}, applications.length > 1 ? ` × ${applications.length}` : "")),
    el("p", {}, el("b", { className: "rate" }), el("small", {}, ` ${unit}`)), el("p", { className: "hand soft" }),
    el("div", { className: "applications" }, ...applications.slice(0, NAMED).map(() =>
      el("div", { className: "application" }, el("span"), el("span", { className: "number" }), el("meter", { min: 0, max: 1, ariaHidden: "true" })))),
    ...(applications.length > NAMED ? [el("p", { className: "soft" }, `and ${applications.length - NAMED} more`)] : []));
  return made;
}

// From the middle of a side to the middle of a side; one that is waited for is drawn in the colour of trouble.
function drawArrows({ stages, links }) {
  const frame = cards.getBoundingClientRect();
  if (!frame.width) return;
  arrows.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  arrows.style.width = `${frame.width}px`;
  arrows.style.height = `${frame.height}px`;
  const box = (role) => {
    const { left, top, width, height } = cards.querySelector(`[data-role=${role}]`).getBoundingClientRect();
    return { left: left - frame.left, right: left - frame.left + width, top: top - frame.top, bottom: top - frame.top + height, middle: top - frame.top + height / 2, centre: left - frame.left + width / 2 };
  };
  const waiting = new Set(stages.flatMap(({ role, applications }) =>
    applications.flatMap(({ waits }) => waits.filter(({ share }) => share > 0.1).map(({ role_of }) => `${role} ${role_of}`))));
  const parts = links.map(({ from, to }) => {
    const [a, b] = [box(from), box(to)];
    const isBlocked = waiting.has(`${from} ${to}`);
    let path;
    if (b.left >= a.right) {
      const bend = (b.left - a.right) / 2;
      const [start, end] = [near(a, b), near(b, a)];
      path = `M${a.right},${start} C${a.right + bend},${start} ${b.left - bend},${end} ${b.left - 6},${end}`;
    } else {
      const down = b.top >= a.bottom;
      const [start, end] = down ? [a.bottom, b.top - 6] : [a.top, b.bottom + 6];
      path = `M${a.centre},${start} C${a.centre},${(start + end) / 2} ${b.centre},${(start + end) / 2} ${b.centre},${end}`;
    }
    return svg("path", { d: path, class: isBlocked ? "way blocked" : "way", "marker-end": "url(#head)" });
  });
  const head = svg("marker", { id: "head", viewBox: "0 0 10 10", refX: 4, refY: 5, markerWidth: 11, markerHeight: 11, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" },
    svg("path", { d: "M0,0 L10,5 L0,10 z", class: "head" }));
  arrows.replaceChildren(svg("defs", {}, head), ...parts);
}

// The height at which a card is left for another: in its own half that lies nearer.
function near(box, other) {
  return box.middle + Math.max(-box.bottom + box.middle + 12, Math.min(box.bottom - box.middle - 12, (other.middle - box.middle) / 4));
}

// One line for those of a role that an application waits for out of one cause, with the longest of the times.
function drawWaits({ stages }) {
  const names = Object.fromEntries(stages.map(({ role, name }) => [role, name]));
  const all = stages.flatMap(({ applications }) => applications.flatMap(({ name, waits }) => waits.map((wait) => ({ name, ...wait }))));
  const groups = Map.groupBy(all.filter(({ share }) => share >= 0.01), ({ name, role_of, cause }) => `${name} ${role_of} ${cause}`);
  const rows = [...groups.values()].map((same) => {
    const longest = same.reduce((a, b) => (a.share >= b.share ? a : b));
    const words = same.length === 1 ? longest.words : `${longest.name} waits for ${same.length} × ${names[longest.role_of]}: ${longest.cause}`;
    return { words, share: longest.share };
  }).sort((a, b) => b.share - a.share);
  waits.replaceChildren(...(rows.length ? rows.map(({ words, share }) =>
    el("li", { className: share > 0.1 ? "warning" : "" }, el("b", { className: "number" }, percent(share)), el("span", {}, words)))
    : [el("li", { className: "soft" }, "Nobody waits for another.")]));
}
