// Elements, and numbers as people read them.

/** An element with attributes and children; a property such as `onclick` or `disabled` is set as one. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The same of SVG. */
export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A table with a heading for each column; cells are texts or elements, and numbers stand at the right. */
export function table(headings, rows, caption) {
  const cell = (kind) => (content, column) => {
    const made = el(kind, kind === "th" ? { scope: "col" } : {});
    made.append(content ?? "");
    if (headings[column].startsWith("#")) made.classList.add("number");
    return made;
  };
  const names = headings.map((heading) => heading.replace("#", ""));
  return el("table", {}, el("caption", { className: "unseen" }, caption),
    el("thead", {}, el("tr", {}, ...names.map(cell("th")))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell("td"))))));
}

/** Shows a text if it is not shown yet: screen readers say each change. */
export function show(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Such as 1:02:03. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  const two = (number) => String(number).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** Thousands apart. */
export function grouped(number) {
  return number === null || number === undefined ? "–" : String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** Three digits with a prefix, such as 1.25 kHz. */
export function si(value, unit) {
  const prefixes = ["", "k", "M", "G", "T"];
  let index = 0;
  while (value >= 999.5 && index < prefixes.length - 1) { value /= 1000; index += 1; }
  const digits = value >= 99.95 || value === 0 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)}\u00a0${prefixes[index]}${unit}`;
}

/** A share such as 4.2 %. */
export function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`;
}

/** A date and a time of this place, which sort as they stand. */
export function moment(time) {
  const at = new Date(time);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${timeOfDay(at)}`;
}

/** Such as 14:03:59. */
export function timeOfDay(time) {
  return new Date(time).toLocaleTimeString("en-GB");
}
