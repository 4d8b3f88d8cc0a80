// What every page has: its data, its frame, its theme, and rules in words.

const report = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

const tone = (result) => ({ pass: "pass", fail: "fail", invalid: "invalid" })[result] || "none";
const isOwn = (rule) => rule.consequence === "invalidates";
const isTargets = (rule) => rule.consequence === "fails";

function card(title, hint, ...content) {
  return el("section", { class: "card" }, title ? el("header", {}, el("h2", {}, title), hint) : null, content);
}

function topBar() {
  const button = el("button", { class: "button", type: "button", onclick: () => setTheme(theme() === "dark" ? "light" : "dark") });
  button.id = "theme";
  return el("div", { class: "bar" }, el("div", { class: "word" }, "muster", el("span", {}, "load test report")), button);
}

const theme = () => document.documentElement.dataset.theme;

function setTheme(name, isKept = true) {
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
  try { if (isKept) localStorage.setItem("muster-theme", name); } catch { /* A page from a file may have no storage; the choice then lasts as long as the page. */ }
  document.documentElement.style.setProperty("--stops", style("--heat").split(" ").join(","));
  redrawCharts();
}

function preferredTheme() {
  try {
    const kept = localStorage.getItem("muster-theme");
    if (kept === "dark" || kept === "light") return kept;
  } catch { /* As above. */ }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const AT_LEAST = ["connected", "queries-with-command"];
const allowed = (rule) => `${AT_LEAST.includes(rule.rule) ? "at least" : "at most"} ${figure(rule.bound)}`;

/// Our own delay decides: the truth lies between both times.
const isBetween = (rule) => rule.result === "not-evaluated" && isKnown(rule.lower) && isKnown(rule.observed);

const bothTimes = (rule) => `between ${rule.lower.us === 0 ? 0 : figure(rule.lower)} and ${figure(rule.observed)}`;

/// Units of monitored resources: words, and the form of a value.
const USED = { "cores": ["cores", rate], "bytes": ["bytes", bytes], "bytes-per-second": ["bytes a second", bytes], "per-second": ["a second", rate], "number": ["", rate] };

/// The scope of a rule with its sets of SLOs; empty for a rule on the whole run that all sets have.
const placeOf = (rule) => [...(rule.scope === "run" ? [] : [rule.scope]), ...(rule.sets || [])].join(", ");

const titleOf = (rule) => (placeOf(rule) ? `${rule.rule} [${placeOf(rule)}]` : rule.rule);

function reason(rule) {
  const since = isKnown(rule.since_s) ? `, since ${clock(rule.since_s)}` : "";
  const seen = isBetween(rule) ? [el("b", {}, bothTimes(rule)), `, ${allowed(rule)}`] : rule.result === "not-evaluated" ? [el("b", {}, "not evaluated")] : [isKnown(rule.observed) ? el("b", {}, observed(rule)) : null, isKnown(rule.bound) ? `, ${allowed(rule)}` : ""];
  return el("li", {}, el("span", { class: "what" }, rule.rule, placeOf(rule) ? el("span", { class: "why" }, ` ${placeOf(rule)}`) : null), el("span", { class: "seen" }, seen, since), el("span", { class: "why" }, unbroken(rule.evidence)), rule.remedy ? el("span", { class: "why remedy" }, `Remedy: ${rule.remedy}`) : null);
}

/// A line for each of these rules that the target or the generator broke, or that was not evaluated.
const brokenOf = (rules) => rules.filter((rule) => isOwn(rule) || isTargets(rule)).map((rule) => el("div", { class: "why" }, `${titleOf(rule)}: `, isBetween(rule) ? bothTimes(rule) : isKnown(rule.observed) ? observed(rule) : rule.evidence, isKnown(rule.bound) ? `, ${allowed(rule)}` : ""));

/// Whether messages without an end are among all due: then these decide, with the unanswered at their lower bound.
const hasMissing = (one) => one?.censored > 0 && Boolean(one.all_due);

const headlineTable = (one) => (hasMissing(one) ? one.all_due : one);

/// A percentile as a figure and its unit: of all due where some have no end, marked where it is a lower bound.
function headline(one, name) {
  const table = headlineTable(one);
  const [value, unit] = timeParts(table?.[name]);
  return [table?.at_least?.includes(name) ? `\u2265\u00a0${value}` : value, unit];
}

function head(names) {
  const shown = (name) => term(String(name));
  return el("thead", {}, el("tr", {}, names.map((name) => (Array.isArray(name) ? el("th", { class: name[1] }, shown(name[0])) : el("th", {}, shown(name))))));
}
