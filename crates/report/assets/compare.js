// The page of a comparison: the verdict, what moved and how surely, and the runs laid over each other.

const { comparisons, overlaid } = report;

const VERDICT_TONES = { better: "pass", same: "pass", worse: "fail", "not-comparable": "invalid" };
const FINDING_TONES = { better: "pass", same: "none", worse: "fail", unclear: "invalid", "differs-here": "invalid", "alike-here": "none" };
const FINDING_WORDS = { "differs-here": "differs within these runs", "alike-here": "alike within these runs" };
const findingWords = (finding) => (isKnown(finding) ? FINDING_WORDS[finding] || finding : "not compared");

const UNITS = {
  us: time,
  "per-second": (value) => `${rate(value)}/s`,
  devices: (value) => `${count(Math.floor(value))} devices`,
  share: (value) => percent(value),
  bytes,
};
const valueWords = (of, value) => (isKnown(value) ? UNITS[of.unit](value) : DASH);
const signed = (value, decimals) => `${value > 0 ? "+" : value < 0 ? "\u2212" : ""}${Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })}`;

function distanceWords(of, by) {
  if (!isKnown(by)) return DASH;
  return of.unit === "share" ? `${signed(by * 100, 3)}\u00a0pp` : `${signed(by * 100, Math.abs(by) < 1 ? 1 : 0)}\u00a0%`;
}

const intervalWords = (of) => (of.interval ? `${distanceWords(of, of.interval[0])} to ${distanceWords(of, of.interval[1])}` : DASH);
const figureTitle = (of) => (of.scope === "run" ? of.figure : `${of.figure} [${of.scope}]`);

function sideWords(side) {
  const counted = side.runs.filter((run) => !isKnown(run.left_out)).length;
  return `${side.name} (${counted === side.runs.length ? counted : `${counted} of ${side.runs.length}`} ${side.runs.length === 1 ? "run" : "runs"})`;
}

function verdictCard(one) {
  const tone = VERDICT_TONES[one.verdict];
  const out = [...one.base.runs, ...one.change.runs].filter((run) => isKnown(run.left_out));
  return el("section", { class: `card verdict tone-${tone}` },
    el("div", { class: "top" }, el("div", { class: "badge" }, icon(tone), el("b", {}, one.verdict.replace("-", " "))),
      el("div", {}, el("h1", {}, one.change.name), el("p", { class: "said" }, `${sideWords(one.change)}, compared with ${sideWords(one.base)}`))),
    el("ul", { class: "reasons" }, one.reasons.map((why) => el("li", {}, el("span", { class: "seen", style: "grid-column: 1 / -1" }, why))),
      out.map((run) => el("li", {}, el("span", { class: "what" }, "left out"), el("span", { class: "seen" }, run.folder), el("span", { class: "why" }, run.left_out)))),
    el("div", { class: "facts" },
      [["tolerance", `${one.tolerance * 100}\u00a0%`], ["intervals", `${(one.confidence * 100).toFixed(2)}\u00a0%`], ["muster", report.muster]]
        .map(([name, value]) => el("span", {}, el("em", {}, name), el("b", {}, value)))));
}

/// Intervals of the figures that decide beneath each other: a band for the tolerance, a bar for each interval.
const FOREST = { row: 30, name: 250, width: 1060, right: 190, top: 26 };

function forest(one) {
  const rows = one.figures.filter((of) => of.decides && of.unit !== "share" && isKnown(of.by));
  if (rows.length === 0) return null;
  const reach = rows.reduce((all, of) => Math.max(all, Math.abs(of.by), ...(of.interval || []).map(Math.abs)), 2 * one.tolerance);
  // What lies beyond twice the base is cut: the figures beside it say how far.
  const most = Math.min(reach * 1.1, 1);
  const height = FOREST.top + rows.length * FOREST.row + 8;
  const span = FOREST.width - FOREST.name - FOREST.right;
  const x = (by) => FOREST.name + span * (0.5 + Math.max(-1, Math.min(1, by / most)) / 2);
  const label = (at, text) => svg("text", { x: x(at), y: 15, "text-anchor": "middle", class: "column" }, text);
  const line = (of, n) => {
    const y = FOREST.top + (n + 0.5) * FOREST.row;
    const color = `var(--${FINDING_TONES[of.finding] || "none"})`;
    const [low, high] = of.interval || [of.by, of.by];
    return [
      svg("text", { x: 0, y: y + 4 }, figureTitle(of)),
      svg("line", { x1: x(low), x2: x(high), y1: y, y2: y, stroke: color, "stroke-width": 3, "stroke-linecap": "round" }),
      svg("circle", { cx: x(of.by), cy: y, r: 5, fill: color }),
      svg("text", { x: FOREST.width - FOREST.right + 14, y: y + 4 }, `${distanceWords(of, of.by)}  ${findingWords(of.finding)}`),
    ];
  };
  return card("How far each figure moved", el("span", { class: "hint" }, `shaded: the tolerance; bars: ${Math.round((1 - (1 - one.confidence) * one.figures.filter((of) => of.decides).length) * 100)} % intervals for all together`),
    el("div", { class: "flow scroll" }, svg("svg", { viewBox: `0 0 ${FOREST.width} ${height}`, role: "img", style: "display:block" },
      svg("rect", { x: x(-one.tolerance), y: FOREST.top - 4, width: x(one.tolerance) - x(-one.tolerance), height: height - FOREST.top, fill: "var(--area)" }),
      svg("line", { x1: x(0), x2: x(0), y1: FOREST.top - 4, y2: height, stroke: "var(--muted)" }),
      label(0, "no change"), label(-most, `${signed(-most * 100, 0)} %`), label(most, `${signed(most * 100, 0)} %`),
      rows.map(line))));
}

function figureTable(figures) {
  const row = (of) => el("tr", {},
    el("td", { class: "name" }, of.decides ? el("b", {}, figureTitle(of)) : figureTitle(of)),
    el("td", { class: "n", title: of.base_runs.map((value) => valueWords(of, value)).join(", ") }, valueWords(of, of.base)),
    el("td", { class: "n", title: of.change_runs.map((value) => valueWords(of, value)).join(", ") }, valueWords(of, of.change)),
    el("td", { class: "n" }, distanceWords(of, of.by)), el("td", { class: "n" }, intervalWords(of)),
    el("td", { class: "n" }, isKnown(of.p) ? (of.p < 1e-4 ? "< 0.0001" : of.p.toFixed(4)) : DASH),
    el("td", { class: `tone-${FINDING_TONES[of.finding] || "none"}` }, el("span", { class: "mark" }, findingWords(of.finding)), of.note ? el("div", { class: "why" }, of.note) : null));
  return el("div", { class: "scroll" }, el("table", {}, head(["figure", ["base", "n"], ["change", "n"], ["by", "n"], ["interval", "n"], ["p", "n"], "finding"]), el("tbody", {}, figures.map(row))));
}

function figureCards(one) {
  if (one.figures.length === 0) return null;
  const [deciding, others] = [one.figures.filter((of) => of.decides), one.figures.filter((of) => !of.decides)];
  return card("Figures", el("span", { class: "hint" }, "in bold: they decide; point at a value to see each run"), figureTable(deciding),
    others.length > 0 ? el("details", {}, el("summary", {}, `${others.length} more figures`), figureTable(others)) : null);
}

function setupCard(one) {
  if (one.setup.length === 0) return null;
  const rows = one.setup.map((of) => el("tr", {}, el("td", { class: "name" }, of.key), el("td", { class: "evidence" }, of.base), el("td", { class: "evidence" }, of.change), el("td", { class: of.blocks ? "bad" : "" }, of.blocks ? "another load" : "")));
  return card("The set-ups differ", null, el("div", { class: "scroll" }, el("table", {}, head(["key", "base", "change", ""]), el("tbody", {}, rows))));
}

/// Colours of the sides, and dashes of the runs of a side.
const SIDE_COLORS = ["--issued", "--completed", "--accepted", "--arrived", "--none"];
const RUN_DASHES = [undefined, [6, 3], [2, 3], [9, 3, 2, 3]];

/// All runs on one axis: seconds since the begin of their measured phases.
function commonAxis() {
  const last = Math.max(...overlaid.map((run) => run.windows.at(-1).t_s + run.windows.at(-1).for_s));
  const step = Math.max(...overlaid.map((run) => run.windows[0].for_s));
  const length = Math.max(1, Math.round(last / step));
  return { phases: [], events: [], windows: Array.from({ length }, (_, n) => ({ t_s: n * step, for_s: step })) };
}

/// The value of a run's window that holds each point of the axis.
function onAxis(axis, run, pick) {
  let at = 0;
  return axis.windows.map((window) => {
    const t = window.t_s + window.for_s / 2;
    while (at < run.windows.length && run.windows[at].t_s + run.windows[at].for_s <= t) at += 1;
    const here = run.windows[at];
    return here && here.t_s <= t ? pick(here) : null;
  });
}

const OVERLAYS = [
  ["Accepted", "messages a second", rate, false, (w) => w.accepted / w.for_s],
  ["Response p50", "by second of due", time, true, (w) => w.response.p50_us],
  ["Response p99", "by second of due", time, true, (w) => w.response.p99_us],
  ["End-to-end p99", "due to arrival at the backend", time, true, (w) => w.end_to_end.p99_us],
  ["Failed", "messages a second", rate, false, (w) => (w.rejected + w.timed_out + w.broken + w.shed) / w.for_s],
];

function overlays() {
  if (overlaid.length < 2 || overlaid.some((run) => run.windows.length === 0)) return;
  const axis = commonAxis();
  if (axis.windows.length < 2) return;
  const place = card("The runs laid over each other", el("span", { class: "hint" }, "seconds since the measured phase began; a click on a name hides its line"));
  page.append(place);
  const before = (side, at) => overlaid.slice(0, at).filter((run) => run.side === side).length;
  for (const [title, hint, format, log, pick] of OVERLAYS) {
    const lines = overlaid.map((run, at) => ({ name: run.folder, title: run.folder, color: SIDE_COLORS[run.side % SIDE_COLORS.length], dash: RUN_DASHES[before(run.side, at) % RUN_DASHES.length], values: onAxis(axis, run, pick) }));
    const all = lines.flatMap((one) => one.values);
    if (!all.some((value) => isKnown(value) && value > 0)) continue;
    lineChart(place, axis, { title, hint, format, log, range: log ? range([all]) : undefined, height: 220, lines });
  }
}

document.body.prepend(page);
page.append(topBar());
setTheme(preferredTheme(), false);
for (const one of comparisons) {
  for (const section of [verdictCard, forest, figureCards, setupCard]) {
    const made = section(one);
    if (made) page.append(made);
  }
}
overlays();
page.append(el("footer", { class: "end" }, el("span", {}, `muster ${report.muster}, ${report.schema}`)));
setTheme(theme(), false);
let wait = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(wait);
  wait = requestAnimationFrame(redrawCharts);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(preferredTheme(), false));
