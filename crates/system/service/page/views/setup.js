// Set-up: the configuration with what each key means, and what the check has found.

import { get } from "../api.js";
import { el, show, table } from "../dom.js";

const findings = el("div", { role: "status", className: "panel" });
const sought = el("input", { type: "search", className: "long", placeholder: "a key or a word, such as pages", oninput: draw });
const isSet = el("input", { type: "checkbox", onchange: draw });
const tables = el("div");
const toml = el("pre", { tabIndex: 0, ariaLabel: "Configuration as TOML" });
let keys = null;

export const id = "setup";
export const title = "Set-up";

export function build(root) {
  root.append(findings, el("form", { role: "search", onsubmit: (event) => event.preventDefault() },
    el("label", {}, "Find", sought), el("label", { className: "beside" }, isSet, "only what differs from its default")),
  tables, el("details", {}, el("summary", {}, "The whole configuration as TOML, as `weir run` takes it"), toml));
}

export async function onShown() {
  if (keys) return;
  const [configuration, schema] = await Promise.all([get("configuration"), get("schema")]);
  toml.textContent = configuration.toml;
  keys = flat(configuration.value, schema, schema, "");
  findings.replaceChildren(...(configuration.warnings.length
    ? [el("h2", {}, "The check warns"), el("ul", { className: "lines" }, ...configuration.warnings.map((text) => el("li", { className: "warning" }, text)))]
    : [el("p", { className: "good" }, "✓ The check has found nothing wrong.")]));
  draw();
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
  return [{ name, text, differs, words: node.description ?? known?.description ?? "" }];
}

function resolved(node, schema) {
  if (!node?.$ref) return node;
  const at = node.$ref.replace("#/", "").split("/");
  return at.reduce((inner, key) => inner?.[key], schema);
}

function draw() {
  if (!keys) return;
  const word = sought.value.trim().toLowerCase();
  const found = keys.filter(({ name, words, differs }) => `${name} ${words}`.toLowerCase().includes(word) && (differs || !isSet.checked));
  const groups = Map.groupBy(found, ({ name }) => name.includes(".") ? name.split(".")[0] : "");
  const code = (text) => [...text.split("`").entries()].map(([index, part]) => index % 2 ? el("code", {}, part) : part);
  tables.replaceChildren(...[...groups].map(([group, members]) => el("section", { className: "panel", ariaLabel: group || "general" },
    el("h2", {}, group ? el("code", {}, `[${group}]`) : "general"),
    table(["key", "value", "meaning"], members.map(({ name, text, differs, words }) => [
      el("code", {}, group ? name.slice(group.length + 1) : name),
      el("code", { className: differs ? "differs" : "" }, text), el("span", {}, ...code(words)),
    ]), `Keys of ${group}`))));
  if (!found.length) tables.append(el("p", { className: "soft" }, "No key has this word."));
}
