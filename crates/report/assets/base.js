// Elements and numbers. Nothing of the report ever becomes markup: text is set as text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const DASH = "\u2013";
const isKnown = (value) => value !== null && value !== undefined;

function count(value) {
  return isKnown(value) ? Math.round(value).toLocaleString("en-US") : DASH;
}

function digits(value, three = 3) {
  const whole = Math.floor(Math.abs(value)).toString().length;
  return value.toLocaleString("en-US", { minimumFractionDigits: Math.max(0, three - whole), maximumFractionDigits: Math.max(0, three - whole) });
}

function rate(value) {
  if (!isKnown(value)) return DASH;
  return value >= 100 || Number.isInteger(value) ? count(value) : digits(value);
}

/// A time in microseconds with three digits, as [figure, unit].
function timeParts(us) {
  if (!isKnown(us)) return [DASH, ""];
  if (us < 1e3) return [count(us), "\u00b5s"];
  if (us < 1e6) return [digits(us / 1e3), "ms"];
  return [digits(us / 1e6), "s"];
}

/// The same on an axis, where a round figure needs no zeros behind the point.
function tick(us, three = 3) {
  const [unit, name] = us < 1e3 ? [1, "\u00b5s"] : us < 1e6 ? [1e3, "ms"] : [1e6, "s"];
  return `${(us / unit).toLocaleString("en-US", { maximumSignificantDigits: three })}\u00a0${name}`;
}

const time = (us) => timeParts(us).join("\u00a0").trim();

function seconds(s) {
  if (!isKnown(s)) return DASH;
  return `${(Math.round(s * 10) / 10).toLocaleString("en-US")}\u00a0s`;
}

function clock(s) {
  const whole = Math.floor(s);
  const [h, m, r] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (n) => String(n).padStart(2, "0");
  return h > 0 ? `${h}:${two(m)}:${two(r)}` : `${m}:${two(r)}`;
}

function bytes(value) {
  if (!isKnown(value)) return DASH;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let left = value;
  while (left >= 1000 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${at === 0 ? count(left) : digits(left)}\u00a0${units[at]}`;
}

/// Two digits of what is missing to nothing or to the whole, and at least one decimal.
function percent(share, more = 0) {
  if (!isKnown(share) || !Number.isFinite(share)) return DASH;
  const value = share * 100;
  const tail = Math.min(Math.abs(value), Math.abs(100 - value));
  const decimals = tail === 0 ? 0 : Math.min(Math.max(1 - Math.floor(Math.log10(tail)), 1), 12);
  return `${decimal(value, decimals + more)}\u00a0%`;
}

const decimal = (value, decimals) => value.toLocaleString("en-US", { maximumFractionDigits: decimals });

/// An observed or allowed value of a rule: a count, or an object whose key is the unit.
function figure(value, more = 0) {
  if (!isKnown(value)) return "";
  if (typeof value !== "object") return typeof value === "number" ? count(value) : String(value);
  if (isKnown(value.us)) return `${value.at_least ? "\u2265\u00a0" : ""}${tick(value.us, 3 + more)}`;
  if (isKnown(value.fraction)) return percent(value.fraction, more);
  if (isKnown(value.per_second)) return `${value.per_second.toLocaleString("en-US", { maximumSignificantDigits: 3 + more })}\u00a0/s`;
  return DASH;
}

/// An observed value with as many digits as it takes to tell it from its bound.
function observed(rule) {
  for (let more = 0; isKnown(rule.bound) && more < 12; more += 1) {
    if (figure(rule.observed, more) !== figure(rule.bound, more)) return figure(rule.observed, more);
  }
  return figure(rule.observed);
}

/// Keeps a number and its unit on one line.
const unbroken = (text) => text.replace(/(\d) (%|us|ms|s|min|h)(?![a-z])/g, "$1\u00a0$2");

const sum = (map) => Object.values(map || {}).reduce((all, one) => all + one, 0);

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const ICONS = {
  pass: ["M5 12.5l4.5 4.5L19 7.5"],
  fail: ["M6.5 6.5l11 11", "M17.5 6.5l-11 11"],
  invalid: ["M12 5.5v8.5", "M12 18.2v.3"],
  none: ["M6 12h12"],
};

/// The mark of a result: a ring with a sign, so that no meaning rests on colour alone.
function icon(result) {
  const sign = ICONS[result] || ICONS.none;
  const stroke = { fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round", "stroke-linejoin": "round" };
  return svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" },
    svg("circle", { cx: 12, cy: 12, r: 10.6, fill: "none", stroke: "currentColor", "stroke-width": 1.6, opacity: 0.45 }),
    sign.map((d) => svg("path", { d, ...stroke })));
}
