// The page of a growth: the answer, what each number of instances carries, and everything over time.

const TONES_OF_GROWTH = { scale: "pass", fail: "fail" };
const TONES_OF_STEP = { pass: "pass", fail: "fail", unclear: "invalid" };
const ADDRESS_COLORS = ["--issued", "--completed", "--accepted", "--arrived", "--none"];
const perS = (value) => `${rate(value)}/s`;
/// What each outcome of a search says.
const SAID = { found: (it) => `${perS(it.lower)} to ${perS(it.upper)}`, "fails-at-first": (it) => `fails at ${perS(it.rate)}`, "at-least": (it) => `at least ${perS(it.rate)}`, idle: (it) => `not judged: ${it.address} received no load`, unclear: (it) => `not judged: ${it.why}${it.known ? `; between ${perS(it.known.lower)} and ${perS(it.known.upper)} so far` : ""}` };
const toneOfGrowth = TONES_OF_GROWTH[report.result.toLowerCase()] || "invalid";

/// Instances in words, with their environment.
function settingOf(one) {
  const sizes = report.components.map((name, at) => (name === "" ? String(one.sizes[at]) : `${name} ${one.sizes[at]}`));
  const variables = Object.entries(report.environments[one.environment] || {}).map(([name, value]) => `${name}=${value}`);
  return [...sizes, ...variables].join(", ");
}

function growthAnswer() {
  const facts = [["searches", count(report.searches.length)], ["took", clock(report.searches.reduce((all, search) => all + search.took_s, 0))]];
  if (report.law) {
    const gain = report.law.gain;
    facts.push(["one instance adds", gain ? `${perS(gain.per_instance)}, between ${perS(gain.lower)} and ${perS(gain.upper)}` : DASH]);
  }
  const helped = isKnown(report.helped_until) ? ` Instances beyond ${report.helped_until} each add less than a fifth of what the first ones carry.` : "";
  return el("section", { class: `card verdict tone-${toneOfGrowth}` },
    el("div", { class: "top" }, el("div", { class: "badge" }, icon(toneOfGrowth), el("b", {}, report.result.toLowerCase())), el("div", {}, el("h1", {}, report.name), el("p", { class: "said" }, `${capital(report.said)}.${helped}`))),
    el("div", { class: "facts" }, facts.map(([name, value]) => el("span", {}, el("em", {}, name), el("b", {}, value)))));
}

/// The components that got an instance more, what that added, and whether it was kept.
function triedCells(addition) {
  if (!addition) return ["", { text: "", n: true }, ""];
  return [addition.components.join(" and "), { text: perS(addition.gain_per_s), n: true }, addition.has_helped ? "kept" : "put back"];
}

function unmeasuredCells() {
  if (!report.unmeasured || report.unmeasured.length === 0) return null;
  const rows = report.unmeasured.map((cell) => [settingOf(cell), cell.outcome ? SAID[cell.outcome.outcome](cell.outcome) : "not searched"]);
  return card("Cells without a capacity", null, table(["instances", "outcome"], rows));
}

function capacitiesByInstances() {
  if (report.capacities.length === 0) return null;
  const price = report.capacities.some((one) => isKnown(one.price_per_million));
  const isAlone = report.components.length === 1;
  const tries = report.capacities.some((one) => isKnown(one.addition));
  const rows = report.capacities.map((one) => [settingOf(one), { text: perS(one.certified_per_s), n: true }, { text: perS(one.interval.upper), n: true }, ...(isAlone ? [{ text: perS(one.per_instance), n: true }] : []), ...(tries ? triedCells(one.addition) : []), ...(price ? [{ text: digits(one.price_per_million), n: true }] : [])]);
  return card("Capacity by instances", el("span", { class: "hint" }, "95 % interval: from certified to at most"), table(["instances", ["certified", "n"], ["at most", "n"], ...(isAlone ? [["an instance", "n"]] : []), ...(tries ? ["one more", ["adds", "n"], ""] : []), ...(price ? [["price of a million", "n"]] : [])], rows));
}

/// Every step as a window, and every pause between two as one without figures.
function growthWindows() {
  const windows = [];
  let until = 0;
  const add = (from, to, instances, step) => {
    if (to > from) windows.push({ t_s: from, for_s: to - from, instances, step });
    until = Math.max(until, to);
  };
  for (const search of report.searches) {
    add(until, search.began_s, null, null);
    for (const step of search.steps) {
      add(until, step.from_s, search.instances, null);
      add(step.from_s, step.until_s, search.instances, step);
    }
    add(until, search.began_s + search.took_s, search.instances, null);
  }
  return windows;
}

function growthOverTime() {
  const windows = growthWindows();
  if (windows.length === 0) return card("Over time", null, el("p", { class: "hint" }, "No step was held."));
  const place = card("Over time", null, el("p", { class: "hint" }, "Each block is a step. Between steps, the target comes to rest. Drag to zoom, double-click to go back."));
  page.append(place);
  const timeline = { windows, events: [], phases: [] };
  const loadWith = (outcome) => windows.map((w) => (w.step?.outcome === outcome ? w.step.load : null));
  const chart = (title, hint, options) => lineChart(place, timeline, { title, hint, stepped: true, height: 150, ...options });
  chart("Load", "offered in each step, by its verdict", { format: rate, height: 260, lines: [
    { name: "pass", color: "--pass", width: 3, values: loadWith("pass") }, { name: "fail", color: "--fail", width: 3, values: loadWith("fail") }, { name: "unclear", color: "--invalid", width: 3, values: loadWith("unclear") },
  ] });
  chart("Instances", "ready", { format: count, lines: [{ name: "instances", color: "--issued", width: 2.5, values: windows.map((w) => w.instances) }] });
  chart("Failed", "share of the messages due in each step, in per cent", { format: (value) => `${digits(value)}\u00a0%`, lines: [{ name: "failed", color: "--fail", width: 2.5, values: windows.map((w) => (isKnown(w.step?.failed_share) ? 100 * w.step.failed_share : null)) }] });
  const addresses = [...new Set(report.searches.flatMap((search) => search.steps.flatMap((step) => Object.keys(step.sent_to))))];
  const sent = (address) => windows.map((w) => (isKnown(w.step?.sent_to[address]) ? w.step.sent_to[address] / w.for_s : null));
  if (addresses.length > 0) chart("Load by address", "sent to each in each step", { format: rate, lines: addresses.map((name, at) => ({ name, color: ADDRESS_COLORS[at % ADDRESS_COLORS.length], width: 2, values: sent(name) })) });
  return null;
}

function searchesOfGrowth() {
  const marks = (search) => ["pass", "fail", "unclear"].map((outcome) => [outcome, search.steps.filter((step) => step.outcome === outcome).length]).filter(([, many]) => many > 0)
    .map(([outcome, many]) => el("span", { class: `mark tone-${TONES_OF_STEP[outcome]}` }, icon(TONES_OF_STEP[outcome]), `${many} ${outcome} `));
  const loads = (search) => search.load.map((of) => el("div", {}, `${of.address}: ${count(of.sent)}`));
  const rows = report.searches.map((search) => [settingOf(search), SAID[search.outcome](search), { text: clock(search.took_s), n: true }, el("div", {}, marks(search)), el("div", {}, loads(search)), search.folder]);
  return card("Searches", null, table(["instances", "capacity", ["took", "n"], "steps", "messages sent to", "folder"], rows));
}

document.body.prepend(page);
page.append(topBar());
setTheme(preferredTheme(), false);
for (const section of [growthAnswer, capacitiesByInstances, unmeasuredCells, growthOverTime, searchesOfGrowth, words, foot]) {
  const made = section();
  if (made) page.append(made);
}
setTheme(theme(), false);
addEventListener("resize", () => requestAnimationFrame(redrawCharts));
