// The page: one section after the other, most important first.

/// The rule fails with the generator's own part counted in, and holds without it.
const OWN_DELAYS = ["own-delay", "own-delay-end-to-end", "own-delay-connect", "consumer-starved", "lateness-grew"];
const isOwnDelay = (rule) => isOwn(rule) && OWN_DELAYS.includes(rule.reason);
/// A run that goes on is judged at its end; how far it or one that was cut has come, with the first word in capitals.
const unfinished = report.unfinished || "";
const isRunning = unfinished.startsWith("running");
const unfinishedInWords = unfinished.replace(/^[a-z]+/, (word) => word.toUpperCase());
const brokenRules = () => [...(["invalid", "none"].includes(report.verdict.result) ? report.verdict.rules.filter(isOwn) : []), ...report.verdict.rules.filter(isTargets)];
const reasons = () => (isRunning ? [] : brokenRules());

function saidInWords() {
  if (isRunning) return `${unfinishedInWords}. The run is judged at its end.`;
  return unfinished ? `${unfinishedInWords}. ${saidOfResult()}` : saidOfResult();
}

function saidOfResult() {
  const { result, would_be: wouldBe } = report.verdict;
  const names = (rules) => [...new Set(rules.map((r) => r.rule))].join(", ");
  const rules = report.verdict.rules;
  if (result === "pass") {
    const notes = [...new Set(rules.map((r) => r.note).filter(Boolean))];
    return ["Every rule that counts holds, and nothing speaks against the generator.", ...notes.map((note) => `${capital(note)}.`)].join(" ");
  }
  if (result === "fail") {
    const broken = rules.filter(isTargets);
    return `The platform breaks ${broken.length === 1 ? "a rule" : `${broken.length} rules`}: ${names(broken)}. The generator is not to blame.`;
  }
  if (result === "invalid") {
    const own = names(rules.filter(isOwn));
    const condition = rules.some(isOwnDelay) ? "With the generator's own delay counted in" : "Without that";
    return `The figures may not be believed${own ? `: ${own}` : ""}.${wouldBe ? ` ${condition}, the result would be ${wouldBe}.` : ""}`;
  }
  const failures = causes(report.links.connect_failures);
  const isMet = report.links.connected > 0 || (report.verdict.causes || []).some((one) => one.backend);
  const why = isMet ? "the run ended before the first message was due" : "the target was not reached, or the run ended before the first message was due";
  return `No verdict: ${why}.${failures ? ` Connect failures: ${failures}.` : ""}`;
}

function verdict() {
  const result = isRunning ? "running" : report.verdict.result;
  const env = report.environment || {};
  const facts = [
    ["run", report.run], ["seed", report.seed], ["started", report.started ? report.started.replace("T", " ").replace("Z", " UTC") : null],
    ["measured", isKnown(report.measured_s) ? seconds(report.measured_s) : null], ["target", typeof env.target === "string" ? env.target : null],
    ["co-located", report.co_located ? "target on the generator's machine" : null],
    ["insecure", env.tls && env.tls.insecure === true ? "any certificate was taken: nobody knows whom this run talked to" : null], ...Object.entries(report.labels),
  ].filter(([, value]) => isKnown(value) && value !== "");
  const list = reasons();
  return el("section", { class: `card verdict tone-${tone(result)}` },
    el("div", { class: "top" }, el("div", { class: "badge" }, icon(result), el("b", {}, result)), el("div", {}, el("h1", {}, report.name), el("p", { class: "said" }, saidInWords()))),
    causeList(),
    list.length > 0 ? el("ul", { class: "reasons" }, list.map(reason)) : null,
    unknownDelivery(),
    notJudged(),
    warnings(),
    el("div", { class: "facts" }, facts.map(([name, value]) => el("span", {}, el("em", {}, term(name)), el("b", {}, String(value))))));
}

/// Beside a pass, the streams whose delivery nothing tells.
function unknownDelivery() {
  const { result, would_be: wouldBe, delivery_unknown: all } = report.verdict;
  if (all.length === 0 || (result !== "pass" && wouldBe !== "pass")) return null;
  const streams = ["enqueued", "nothing"].map((promise) => [promise, all.filter((one) => one.promise === promise).map((one) => one.scope)]);
  const words = streams.filter(([, of]) => of.length > 0).map(([promise, of]) => `${promise} [${of.join(", ")}]`);
  return el("p", { class: "said" }, el("b", {}, "Delivery unknown"), `: no backend, counter or read-back looks behind acknowledgements that promise ${words.join(", ")}.`);
}

/// The rules that the scenario switched off.
function notJudged() {
  const rules = report.verdict.switched_off.map((off) => (off.scope === "run" ? off.rule : `${off.rule} [${off.scope}]`));
  return rules.length === 0 ? null : el("p", { class: "said" }, `Not judged: ${rules.join(", ")} (switched off by `, el("code", {}, "any"), ").");
}

/// Links that did not come up, and why: before everything else.
function causeList() {
  const all = report.verdict.causes || [];
  if (all.length === 0) return null;
  const line = (one) => el("li", {}, el("span", { class: "what" }, one.backend ? "backend" : "links"), el("span", { class: "seen" }, el("b", {}, one.text)));
  return el("ul", { class: "reasons" }, all.map(line));
}

/// What went wrong and no rule looked at, beside the verdict that it did not move.
function warnings() {
  const all = report.verdict.warnings;
  if (all.length === 0) return null;
  const line = (one) => el("li", {}, el("span", { class: "what" }, "warning", one.scope === "run" ? null : el("span", { class: "why" }, ` ${one.scope}`)), el("span", { class: "seen" }, el("b", {}, capital(one.detail))));
  return el("ul", { class: "reasons tone-invalid" }, all.map(line));
}

function kpi(name, value, unit, note, options = {}) {
  const dot = el("i", { style: options.color ? `--dot:var(${options.color})` : "display:none" });
  return el("div", { class: options.bad ? "kpi bad" : "kpi" }, el("div", { class: "name" }, dot, term(name)), el("div", { class: "figure" }, value, unit ? el("small", {}, unit) : null), el("div", { class: "note" }, note));
}

/// Which messages the p99 is of, or why there is none.
function headlineNote(one) {
  if (!one) return "nothing was measured";
  if (!isKnown(headlineTable(one).p99_us)) return `needs 1,000 answers, has ${count(one.count)}`;
  const answered = `${count(one.count)} answered`;
  return hasMissing(one) ? `of all due: ${answered}, ${count(one.censored)} never; of the answered ${time(one.p99_us)}` : `of ${answered}`;
}

function kpis() {
  const { rates, latency, ledger } = report;
  const all = backendsInOrder(report);
  const [name, worst] = all.reduce((a, b) => (b[1].lost > a[1].lost ? b : a), all[0] || ["", ledger.uplink]);
  const where = all.length > 1 ? ` at ${backendName(name)}` : "";
  const response = latency.response || latency.end_to_end;
  const leg = latency.response || !latency.end_to_end ? "response" : "end-to-end";
  const unit = (value) => (isKnown(value) ? "/s" : "");
  const breaks = (rule) => ({ bad: report.verdict.rules.some((r) => r.rule === rule && r.result === "fail") });
  const [p50, p99] = [headline(response, "p50_us"), headline(response, "p99_us")];
  const lateness = timeParts(report.generator.lateness_p99_us);
  return el("section", { class: "kpis" },
    kpi("offered", rate(rates.offered), unit(rates.offered), "due by the declared rate", { color: "--offered" }),
    kpi("issued", rate(rates.issued), unit(rates.issued), "handed to the network", { color: "--issued" }),
    kpi("answered", rate(rates.completed), unit(rates.completed), isKnown(rates.accepted) ? `accepted ${rate(rates.accepted)} /s` : "", { color: "--completed" }),
    kpi("arrived", rate(rates.arrived), unit(rates.arrived), isKnown(rates.arrived) ? "first copies at the backend" : "no backend listens", { color: "--arrived" }),
    kpi(`${leg} p50`, p50[0], p50[1], hasMissing(response) ? `of all due; of the answered ${time(response.p50_us)}` : "from due, not from sent", breaks(`${leg} p50`)),
    kpi(`${leg} p99`, p99[0], p99[1], headlineNote(response), breaks(`${leg} p99`)),
    kpi(worst.is_store ? "not stored" : "lost", count(worst.lost), "", isKnown(worst.lost) ? (worst.is_store ? "accepted but not stored" : `accepted and never arrived${where}`) : "not known", { bad: worst.lost > 0 }),
    kpi("lateness p99", lateness[0], lateness[1], "the generator's own delay", breaks("shape")));
}

function overTime() {
  if (report.windows.length < 2) return card("Over time", null, el("p", { class: "hint" }, "The run was too short for a chart."));
  const bounds = slos();
  const measured = report.phases.find((p) => p.phase === "measure");
  const buttons = el("div", { class: "row" },
    el("button", { class: "button", type: "button", onclick: () => wholeRun(report) }, "Whole run"),
    measured ? el("button", { class: "button", type: "button", onclick: () => zoom(measured.from_s, measured.until_s) }, "Measured phase") : null);
  const place = card("Over time", buttons, el("p", { class: "hint" }, `Drag to zoom, double-click to go back. Shaded: not measured.${report.events.length > 0 ? " Numbered: events, listed below." : ""}`));
  page.append(place);
  const w = report.windows;
  lineChart(place, report, { title: "Rates", hint: "messages a second", format: rate, stepped: true, height: 240, lines: [
    { name: "offered", color: "--offered", area: "--area", width: 1, values: perSecond(w, "offered") },
    { name: "issued", color: "--issued", width: 2.5, values: perSecond(w, "issued") },
    { name: "answered", color: "--completed", values: perSecond(w, "completed") },
    { name: "accepted", color: "--accepted", dash: [6, 3], values: perSecond(w, "accepted") },
    { name: "arrived", color: "--arrived", dash: [2, 3], width: 2.25, values: perSecond(w, "arrived") },
  ] });
  latencyChart(place, "response", "by second of due; where messages were never answered, at least this");
  heatChart(place, report);
  latencyChart(place, "end-to-end", "due to arrival at the backend");
  lineChart(place, report, { title: "What went wrong", hint: "messages a second", format: rate, stepped: true, height: 130, least: 5, lines: [
    { name: "rejected", color: "--completed", values: some(perSecond(w, "rejected")) }, { name: "timed out", color: "--issued", values: some(perSecond(w, "timed_out")) },
    { name: "broken", color: "--fail", values: some(perSecond(w, "broken")) }, { name: "shed", color: "--none", values: some(perSecond(w, "shed")) },
  ] });
  lineChart(place, report, { title: "Links up", hint: "at the end of each window", format: count, height: 130, limits: bounds.links, lines: [{ name: "links", color: "--issued", values: w.map((one) => one.links_up) }] });
  targetCharts(place);
  return null;
}

const ENTRIES = ["--issued", "--completed", "--arrived", "--accepted", "--p999", "--none"];

/// What the target used: a chart for each resource with a line for each entry, below the load that it is of.
function targetCharts(place) {
  const kind = (one) => `${one.resource} ${one.unit}`;
  for (const each of new Set(report.monitor.map(kind))) {
    const all = report.monitor.filter((one) => kind(one) === each);
    const [hint, format] = USED[all[0].unit];
    lineChart(place, report, { title: `Target: ${all[0].resource}`, hint, format, height: 130, least: 0.01, lines: all.map((one, n) => ({ name: one.name, color: ENTRIES[n % ENTRIES.length], values: onWindows(one) })) });
  }
}

/// The mean of the samples of a resource in each window of the run.
function onWindows(series) {
  return report.windows.map((w) => {
    const within = series.windows.filter(([from]) => from + series.for_s > w.t_s && from < w.t_s + w.for_s);
    return within.length > 0 ? within.reduce((sum, one) => sum + one[1], 0) / within.length : null;
  });
}

/// A counter that is zero all the time is no line.
const some = (values) => (values.some((v) => v > 0) ? values : values.map(() => null));

const CURVES = [["p50", "--p50"], ["p90", "--p90"], ["p99", "--p99"], ["p99.9", "--p999", [4, 3]]];

function latencyChart(place, leg, hint) {
  const [object, limits] = [leg.replaceAll("-", "_"), slos()[leg]];
  const key = (name) => name.replace(".", "_");
  const lines = CURVES.map(([name, color, dash]) => ({
    name, color, dash, values: report.windows.map((w) => w[object][`${key(name)}_us`]), over: (w) => w[`${object}_over`]?.[`${key(name)}_s`],
  }));
  const values = [...lines.map((one) => one.values), limits.map((one) => one.at)];
  if (lines.every((one) => !one.values.some(isKnown))) return;
  lineChart(place, report, { title: capital(leg), hint, format: time, log: true, height: 220, range: range(values), limits, lines });
}

/// What SLOs allow of what the charts show, highest first, each once.
function slos() {
  const found = { "response": [], "end-to-end": [], links: [] };
  for (const rule of report.verdict.rules.filter((one) => one.kind === "slo" && isKnown(one.bound))) {
    const [, leg, percentile] = /^(response|end-to-end) (p[\d.]+)$/.exec(rule.rule) || [];
    if (leg && isKnown(rule.bound.us)) found[leg].push({ at: rule.bound.us, label: `SLO ${percentile} \u2264 ${tick(rule.bound.us)}` });
    const links = rule.rule === "connected" && rule.scope === "run" ? rule.bound.fraction * report.links.wanted : NaN;
    if (links > 0) found.links.push({ at: links, label: `SLO \u2265 ${count(links)}` });
  }
  const once = (all) => all.filter((one, n) => all.findIndex((other) => other.label === one.label) === n).sort((a, b) => b.at - a.at);
  return Object.fromEntries(Object.entries(found).map(([name, all]) => [name, once(all)]));
}

function events() {
  if (report.events.length === 0) return null;
  const rows = report.events.map((event, n) => {
    const until = isKnown(event.until_s) ? ` to ${clock(event.until_s)}` : "";
    const room = Math.max(5, (event.until_s ?? event.t_s) - event.t_s);
    const show = () => zoom(Math.max(0, event.t_s - room), (event.until_s ?? event.t_s) + room);
    return el("tr", { class: "jump", onclick: show, title: "Zoom the charts to it" }, el("td", { class: "tight" }, el("span", { class: "number" }, String(n + 1))), el("td", { class: "n tight" }, `${clock(event.t_s)}${until}`), el("td", { class: "tight" }, event.kind), el("td", { class: "why wide" }, event.detail, recovery(event)));
  });
  return card("Events", el("span", { class: "hint" }, "a click zooms the charts"), el("div", { class: "scroll" }, el("table", { class: "stack events" }, head(["", ["when", "n"], "what", "detail"]), el("tbody", {}, rows))));
}

/// When rate and latency were back after an outage.
function recovery(event) {
  if (!event.recovery) return null;
  const after = event.recovery.after_s;
  return el("div", { class: "recovered" }, isKnown(after) ? [term("recovered"), ` after ${seconds(after)}`] : "not recovered while measuring");
}

document.body.prepend(page);
page.append(topBar());
setTheme(preferredTheme(), false);
for (const section of [verdict, kpis, stepTable, overTime, events, ledger, rules, streams, twoColumns, scenario, words, foot]) {
  const made = section();
  if (made) page.append(made);
}
later.forEach((draw) => draw());
redrawFlow();
setTheme(theme(), false);
let wait = 0;
/// On paper: light, nothing folded, and charts as wide as the sheet.
let folded = [];
const PAPER_WIDTH = 690;
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach(opened);
  setTheme("light", false);
  for (const { chart } of charts) chart.setSize({ width: Math.min(chart.width, PAPER_WIDTH), height: chart.height });
});
addEventListener("afterprint", () => {
  folded.forEach((one) => one.removeAttribute("open"));
  setTheme(preferredTheme(), false);
});
addEventListener("resize", () => {
  cancelAnimationFrame(wait);
  wait = requestAnimationFrame(() => { redrawCharts(); redrawFlow(); });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(preferredTheme(), false));
