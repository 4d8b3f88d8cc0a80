// The page of a capacity: the answer, the response curve, and every step.

const TONES_OF_END = { found: "pass", "fails-at-first": "fail" };
const TONES_OF_OUTCOME = { pass: "pass", fail: "fail", unclear: "invalid" };
const COUNTS = { devices: "devices", payload: "bytes" };
const load = (value) => report.find in COUNTS ? `${rate(Math.floor(value))} ${COUNTS[report.find]}` : `${rate(value)}/s`;
/// The answer for each set of SLOs, the worst one first.
const answers = [report, ...(report.others || [])];
const endOf = (answer) => answer.end || { end: "interrupted" };
const intervalOf = (answer) => endOf(answer).interval || answer.known;
const toneOf = (answer) => (answer.refuted ? "invalid" : TONES_OF_END[endOf(answer).end] || "invalid");
/// The latencies that a dimension of the load is about; the first one that a step has is drawn.
const LEGS_OF = { commands: { command_loop: "command-loop" } };
const legs = LEGS_OF[report.find] || { response: "response", end_to_end: "end-to-end" };
const legOf = (step) => Object.keys(legs).map((key) => step.figures.latency[key]).find((leg) => leg);
const firstFailingOf = (answer) => report.steps.find((step) => step.number === answer.first_failing);
/// The rules of a step that a set of SLOs has.
const rulesOf = (step, set) => step.figures.rules.filter((rule) => !set || !rule.sets || rule.sets.includes(set));
/// The outcomes of a step: that by the set that it was held for first.
const outcomesOf = (step) => [step, ...(step.others || [])];
/// Percentiles of all due, as rules judge them.
const dueOf = (step, name) => (legOf(step)?.all_due || legOf(step))?.[name];
const share = (step, many) => (step.figures.ledger.scheduled > 0 ? (100 * (many || 0)) / step.figures.ledger.scheduled : null);
/// The share of the commands due whose reply did not come.
const unreplied = ({ figures: { commands } }) => (commands?.scheduled > 0 ? (100 * (commands.scheduled - commands.replied)) / commands.scheduled : null);

function answer() {
  const result = toneOf(report);
  const firstFailing = firstFailingOf(report);
  const broken = firstFailing ? rulesOf(firstFailing, report.set).filter(isTargets) : [];
  const facts = [["run", report.run], ["steps", count(report.steps.length)], ["took", clock(report.steps.reduce((all, step) => all + step.took_s, 0))], ["sessions", count(report.sessions)], ...generatorFacts()];
  return el("section", { class: `card verdict tone-${result}` },
    el("div", { class: "top" }, el("div", { class: "badge" }, icon(result), el("b", {}, endOf(report).end.replaceAll("-", " "))), el("div", {}, el("h1", {}, report.name), el("p", { class: "said" }, report.set ? `${report.set}: ` : null, saidOf(report)))),
    broken.length > 0 ? el("ul", { class: "reasons" }, el("li", {}, el("span", { class: "what" }, "first fails at"), el("span", { class: "seen" }, el("b", {}, load(firstFailing.load)), ` in step ${firstFailing.number}`)), broken.map(reason), saturatedOf(report)) : null,
    el("div", { class: "facts" }, facts.map(([name, value]) => el("span", {}, el("em", {}, name), el("b", {}, String(value))))));
}

/// The resource of the target that was nearest to its limit in the first failing step.
function saturatedOf(answer) {
  const { saturated } = answer;
  if (!saturated) return null;
  const [unit, of] = USED[saturated.unit];
  return el("li", {}, el("span", { class: "what" }, "nearest to its limit", el("span", { class: "why" }, ` ${saturated.name}`)), el("span", { class: "seen" }, el("b", {}, `${saturated.resource} ${of(saturated.failing)}`), ` of ${of(saturated.limit)} ${unit}`), el("span", { class: "why" }, `of what monitor watches; ${of(saturated.passing)} at the highest load below that passed`));
}

/// The generator's own ceiling, and its share at the certified load.
function generatorFacts() {
  if (!report.generator) return [];
  const { ceiling, share } = report.generator;
  return [["generator's ceiling", report.find === "payload" ? load(ceiling.rate) : `${rate(ceiling.rate)}/s`], ...(isKnown(share) ? [["of it needed", percent(share)]] : [])];
}

/// A row a set of SLOs, the worst one first; nothing if the scenario names no sets.
function answersOfSets() {
  if (!report.set) return null;
  const word = (answer) => endOf(answer).end.replaceAll("-", " ");
  const rows = answers.map((answer) => {
    const [interval, failing] = [intervalOf(answer), firstFailingOf(answer)];
    return [answer.set, { text: isKnown(answer.certified) ? load(answer.certified) : DASH, n: true }, { text: interval ? `${load(interval.lower)} to ${load(interval.upper)}` : DASH, n: true },
      failing ? el("div", {}, `${load(failing.load)} in step ${failing.number}`, brokenOf(rulesOf(failing, answer.set))) : DASH, el("div", {}, el("span", { class: `mark tone-${toneOf(answer)}` }, icon(toneOf(answer)), word(answer)), el("div", { class: "why" }, saidOf(answer)))];
  });
  return card("Answers", el("span", { class: "hint" }, "one for each set of SLOs, the worst one first"), table(["set", ["certified", "n"], ["interval", "n"], "first fails at", "end"], rows));
}

/// The noise that kept the search from stating a capacity, of each set of SLOs; nothing if it stated one.
function noise() {
  const rows = answers.flatMap((answer) => (answer.noise || []).map((of) => [answer.set || "", of.kind, of.steps.join(", "), of.seen, of.remedy]));
  if (rows.length === 0) return null;
  return card("Noise", el("span", { class: "hint" }, "kept the search from stating a capacity"), table(["set", "kind", "steps", "seen", "what helps"], rows));
}

/// The end of a search in words.
function saidOf(answer) {
  const [end, interval] = [endOf(answer), intervalOf(answer)];
  const between = interval ? ` between ${load(interval.lower)} and ${load(interval.upper)}` : "";
  const soFar = between ? ` So far it lies${between}.` : "";
  const said = {
    found: () => answer.refuted ? `${load(interval.lower)} was found and is not certified: ${answer.refuted}.` : `${load(answer.certified)} certified: held three times and passed each time. 95 % interval: ${load(interval.lower)} to ${load(interval.upper)}.`,
    "fails-at-first": () => `The SLOs fail at the first step, ${load(end.rate)}. Try a lower one with --from.`,
    "at-least": () => `At least ${load(end.rate)}: the highest load passes. Try a higher one with --to, unless the generator is the bound.`,
    "not-recovered": () => `The target did not come to rest after ${load(end.rate)}.${soFar}`,
    "nothing-clear": () => `Steps stay unclear, the last one at ${load(end.rate)}.${soFar}`,
    "out-of-budget": () => `The time is up: ${isKnown(end.passed) ? load(end.passed) : "no load"} passed.${soFar} Go on with --resume and a longer --budget.`,
    interrupted: () => `The search was interrupted.${soFar} Go on with --resume.`,
  };
  return said[end.end]();
}

/// The interval of each answer as a band, and its lower end, which is the knee if it was certified.
const kneeBands = (u) => answers.forEach((answer, row) => kneeBand(u, answer, row));

function kneeBand(u, answer, row) {
  const interval = intervalOf(answer);
  if (!interval) return;
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  const x = (at) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(at, "x", true)));
  const [from, to] = [x(interval.lower), x(interval.upper)];
  ctx.save();
  ctx.fillStyle = style("--mark");
  ctx.fillRect(from, bbox.top, Math.max(to - from, ratio), bbox.height);
  ctx.fillStyle = style("--mark-edge");
  ctx.fillRect(from, bbox.top, 1.5 * ratio, bbox.height);
  ctx.font = `600 ${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "top";
  const name = `${answer.set ? `${answer.set}: ` : ""}${isKnown(answer.certified) ? "knee" : "above"}`;
  ctx.fillText(`${name} ${load(interval.lower)}`, from - 4 * ratio, bbox.top + (4 + 14 * row) * ratio);
  ctx.restore();
}

/// What SLOs on the drawn latency allow, each once.
function latencyLimits(leg) {
  const rules = report.steps.flatMap((step) => step.figures.rules).filter((rule) => rule.kind === "slo" && rule.rule.startsWith(`${leg} p`) && isKnown(rule.bound?.us));
  const labels = new Map(rules.map((rule) => [`SLO ${[rule.rule.slice(leg.length + 1), ...(rule.sets || [])].join(" ")} \u2264 ${tick(rule.bound.us)}`, rule.bound.us]));
  return [...labels].map(([label, at]) => ({ at, label }));
}

/// A chart over the load; points of one load stand above each other.
function curve(place, title, hint, options) {
  // Unclear steps show the generator's own delay.
  const decided = report.steps.filter((step) => outcomesOf(step).some((by) => by.outcome !== "unclear"));
  const inOrder = (decided.length > 0 ? decided : [...report.steps]).sort((a, b) => a.load - b.load);
  const xs = inOrder.map((step) => step.load);
  const shown = options.lines.map((one) => ({ ...one, values: inOrder.map(one.of) })).filter((one) => one.values.some(isKnown));
  if (shown.length === 0) return;
  const values = shown.map(() => el("b", {}, ""));
  const where = el("span", { class: "at" });
  const keys = shown.map((one, at) => el("span", { class: "key" }, sample(one), one.name, values[at]));
  const host = el("div");
  place.append(el("section", { class: "chart" }, el("div", { class: "head" }, el("h3", {}, title), el("span", { class: "hint" }, hint), el("div", { class: "keys" }, where, keys)), host));
  const y = axes(options.format === time ? tick : options.format);
  y[0] = { ...y[0], values: (u, ticks) => ticks.map(load), incrs: undefined, space: 80 };
  if (options.log) y[1].splits = logTicks;
  const show = (u) => {
    const at = u.cursor.idx;
    where.textContent = isKnown(at) ? load(xs[at]) : "";
    shown.forEach((one, n) => { values[n].textContent = isKnown(at) && isKnown(one.values[at]) ? options.format(one.values[at]) : ""; });
  };
  const bounds = range([...shown.map((one) => one.values), (options.limits || []).map((one) => one.at)]);
  const room = (xs[xs.length - 1] - xs[0]) * 0.03 || 1;
  const chart = new uPlot({
    width: Math.max(host.clientWidth, 200), height: options.height, padding: [8, 22, 0, 0], legend: { show: false },
    cursor: { sync: { key: SYNC, scales: ["x", null] }, drag: { x: true, y: false, dist: 8 }, points: { size: 7 } },
    scales: { x: { time: false, range: (u, low, high) => [Math.max(0, low - room), high + room] }, y: options.log ? { distr: 3, range: () => bounds } : { range: (u, low, high) => [0, Math.max(high * 1.08, 1)] } },
    axes: y,
    series: [{}, ...shown.map((one) => ({ ...line(one, false), points: { show: true, size: 6, fill: () => style(one.color) }, spanGaps: true }))],
    hooks: { drawAxes: [kneeBands], ready: [followTouch], setCursor: [show], draw: [limitLines(options.limits || [])] },
  }, [xs, ...shown.map((one) => one.values)], host);
  charts.push({ chart, host });
}

function responseCurve() {
  if (report.steps.length === 0) return card("Response curve", null, el("p", { class: "hint" }, "No step was held."));
  const place = card("Response curve", null, el("p", { class: "hint" }, `Each point is a step that passed or failed. Shaded: the interval that the capacity lies in${report.set ? ", of each set of SLOs" : ""}. Drag to zoom, double-click to go back.`));
  page.append(place);
  const leg = legs[Object.keys(legs).find((key) => report.steps.some((step) => step.figures.latency[key]))] ?? Object.values(legs).at(-1);
  const percentile = (name, key, color, dash) => ({ name, color, dash, of: (step) => dueOf(step, key) });
  curve(place, capital(leg), "percentiles of all due, against the offered load", { format: time, log: true, height: 320, limits: latencyLimits(leg), lines: [
    percentile("p50", "p50_us", "--p50"), percentile("p90", "p90_us", "--p90"), percentile("p99", "p99_us", "--p99"), percentile("p99.9", "p99_9_us", "--p999", [4, 3]),
  ] });
  curve(place, "Lost and failed", "share of the messages due, in per cent", { format: (value) => `${digits(value)}\u00a0%`, height: 150, lines: [
    { name: "without a reply", color: "--arrived", of: unreplied }, { name: "lost", color: "--fail", of: (step) => share(step, step.figures.ledger.lost) }, { name: "failed", color: "--completed", of: (step) => share(step, step.figures.ledger.failed) },
  ] });
  curve(place, "Issued and answered", "messages a second", { format: rate, height: 170, lines: [
    { name: "issued", color: "--issued", of: (step) => step.figures.rates.issued }, { name: "answered", color: "--accepted", dash: [6, 3], of: (step) => step.figures.rates.completed },
    { name: "arrived", color: "--arrived", dash: [2, 3], of: (step) => step.figures.rates.arrived },
  ] });
  return null;
}

function searchSteps() {
  const due = (step, name) => ({ text: headline(legOf(step), name).join("\u00a0"), n: true });
  const mark = ({ outcome, set }) => el("span", { class: `mark tone-${TONES_OF_OUTCOME[outcome]}` }, icon(TONES_OF_OUTCOME[outcome]), set ? `${set}: ${outcome}` : outcome);
  const rows = report.steps.map((step) => [String(step.number), step.phase.replace("-", " "), { text: load(step.load), n: true }, { text: seconds(step.figures.until_s - step.figures.from_s), n: true }, due(step, "p50_us"), due(step, "p99_us"),
    n(step.figures.ledger.failed, step.figures.ledger.failed > 0), n(step.figures.ledger.lost, step.figures.ledger.lost > 0), el("div", {}, outcomesOf(step).map((by) => el("div", {}, mark(by))), brokenOf(step.figures.rules))]);
  return card("Steps", el("span", { class: "hint" }, "percentiles are of all due"),
    table(["", "phase", ["load", "n"], ["held", "n"], ["p50", "n"], ["p99", "n"], ["failed", "n"], ["lost", "n"], "outcome"], rows));
}

document.body.prepend(page);
page.append(topBar());
setTheme(preferredTheme(), false);
for (const section of [answer, noise, answersOfSets, responseCurve, searchSteps, words, foot]) {
  const made = section();
  if (made) page.append(made);
}
setTheme(theme(), false);
addEventListener("resize", () => requestAnimationFrame(redrawCharts));
