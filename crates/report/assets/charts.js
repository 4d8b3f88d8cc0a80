// Everything over time: charts that share their axis, their cursor and their zoom.

const SYNC = "muster";
const charts = [];

function points(windows) {
  return windows.map((w) => w.t_s + w.for_s / 2);
}

/// For counters, which hold for a whole window: its begin, and the end of the last one.
function steps(windows) {
  const last = windows[windows.length - 1];
  return [...windows.map((w) => w.t_s), last.t_s + last.for_s];
}

const held = (values) => [...values, values[values.length - 1]];

const perSecond = (windows, name) => windows.map((w) => (isKnown(w[name]) ? w[name] / w.for_s : null));

/// Shades what is not measured and what happened, and numbers the events as their list does.
function bands(report) {
  return (u) => {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    const x = (t) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(t, "x", true)));
    ctx.save();
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    for (const phase of report.phases.filter((p) => p.phase !== "measure")) {
      const [from, to] = [x(phase.from_s), x(phase.until_s)];
      ctx.fillStyle = style("--warm");
      ctx.fillRect(from, bbox.top, to - from, bbox.height);
      ctx.fillStyle = style("--muted");
      if (from > bbox.left) ctx.fillRect(from, bbox.top, ratio, 15 * ratio);
      // In a low chart the name would stand in the line.
      const hasRoom = bbox.height > 130 * ratio && to - from > ctx.measureText(phase.phase).width + 10 * ratio;
      if (hasRoom) ctx.fillText(phase.phase, from + 5 * ratio, bbox.top + 4 * ratio);
    }
    for (const event of report.events) band(u, x(event.t_s), x(event.until_s ?? event.t_s));
    ctx.restore();
  };
}

function band(u, from, to) {
  const { ctx, bbox } = u;
  if (to <= bbox.left || from >= bbox.left + bbox.width) return;
  ctx.fillStyle = style("--mark");
  ctx.fillRect(from, bbox.top, Math.max(to - from, uPlot.pxRatio), bbox.height);
  ctx.fillStyle = style("--mark-edge");
  ctx.fillRect(from, bbox.top, uPlot.pxRatio, bbox.height);
}

/// The numbers of the events stand above the chart, each beside its neighbour where they are close.
function numbers(report) {
  return (u) => {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    let free = -Infinity;
    ctx.save();
    ctx.font = `600 ${10.5 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    report.events.forEach((event, n) => {
      if (free > bbox.left + bbox.width) return;
      const from = u.valToPos(event.t_s, "x", true);
      const to = u.valToPos(event.until_s ?? event.t_s, "x", true);
      if (to < bbox.left || from > bbox.left + bbox.width) return;
      const x = Math.max(from, bbox.left, free);
      free = x + 16 * ratio;
      ctx.fillStyle = style("--mark-edge");
      ctx.beginPath();
      ctx.arc(x, bbox.top - 9 * ratio, 7.5 * ratio, 0, 2 * Math.PI);
      ctx.fill();
      ctx.fillStyle = style("--card");
      ctx.fillText(String(n + 1), x, bbox.top - 8.5 * ratio);
    });
    ctx.restore();
  };
}

function axes(format, size = 62) {
  const common = { stroke: () => style("--muted"), font: `12px ${getComputedStyle(document.body).fontFamily}`, grid: { stroke: () => style("--line"), width: 1 }, ticks: { show: false } };
  return [
    { ...common, space: 70, size: 30, values: (u, ticks) => ticks.map(clock), incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200] },
    { ...common, size, gap: 6, values: (u, ticks) => ticks.map((t) => (isKnown(t) ? format(t) : "")) },
  ];
}

/// Ticks of a logarithmic scale of times: 1, 2 and 5 where there is room, else decades.
function logTicks(u, axis, min, max) {
  const ticks = [];
  const steps = Math.log10(max / min) > 3.2 ? [1] : [1, 2, 5];
  for (let decade = 10 ** Math.floor(Math.log10(min)); decade <= max; decade *= 10) {
    for (const step of steps) if (decade * step >= min && decade * step <= max) ticks.push(decade * step);
  }
  return ticks;
}

/// Dashed lines at what SLOs allow, each with its label above it or below the one before.
function limitLines(limits) {
  return (u) => {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    let free = -Infinity;
    ctx.save();
    ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "right";
    ctx.textBaseline = "bottom";
    ctx.strokeStyle = style("--fail");
    ctx.lineWidth = 1.25 * ratio;
    ctx.setLineDash([5 * ratio, 4 * ratio]);
    for (const { at, label } of limits) {
      const y = u.valToPos(at, "y", true);
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const isAbove = y - bbox.top > 15 * ratio && y - 2 * ratio >= free;
      const foot = isAbove ? y - 2 * ratio : Math.max(y + 15 * ratio, free);
      free = foot + 14 * ratio;
      const right = bbox.left + bbox.width - 4 * ratio;
      const width = ctx.measureText(label).width;
      ctx.fillStyle = style("--card");
      ctx.fillRect(right - width - 3 * ratio, foot - 12.5 * ratio, width + 5 * ratio, 13 * ratio);
      ctx.fillStyle = style("--fail");
      ctx.fillText(label, right, foot);
    }
    ctx.restore();
  };
}

function range(values) {
  const known = values.flat().filter((v) => isKnown(v) && v > 0);
  if (known.length === 0) return [100, 1e5];
  const low = Math.min(...known.map((v) => v));
  const high = known.reduce((a, b) => Math.max(a, b), 0);
  return [10 ** (Math.floor(Math.log10(low) * 4) / 4), 10 ** (Math.ceil(Math.log10(high) * 4 + 0.2) / 4)];
}

function followTouch(u) {
  const move = (event) => {
    const box = u.over.getBoundingClientRect();
    u.setCursor({ left: event.touches[0].clientX - box.left, top: event.touches[0].clientY - box.top });
  };
  u.over.addEventListener("touchstart", move, { passive: true });
  u.over.addEventListener("touchmove", move, { passive: true });
}

function line(spec, isStepped) {
  return { label: spec.name, stroke: () => style(spec.color), width: spec.width ?? 1.75, dash: spec.dash, paths: isStepped ? uPlot.paths.stepped({ align: 1 }) : undefined, fill: spec.area ? () => style(spec.area) : undefined, points: { show: false }, spanGaps: false };
}

function sample(spec) {
  return svg("svg", { viewBox: "0 0 18 8" }, svg("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: `var(${spec.color})`, "stroke-width": 2.4, "stroke-dasharray": spec.dash ? spec.dash.join(" ") : null }));
}

/// A chart with lines; the key above it shows the values under the cursor.
function lineChart(place, report, options) {
  const xs = options.stepped ? steps(report.windows) : points(report.windows);
  const shown = options.lines.filter((spec) => spec.values.some(isKnown));
  if (shown.length === 0) return;
  const values = shown.map(() => el("b", {}, ""));
  const moment = el("span", { class: "at" });
  const keys = shown.map((spec, n) => el("button", {
    class: "key", type: "button", "aria-pressed": "true", title: spec.title || meaning(spec.name) || spec.name,
    onclick: (event) => {
      const isOn = !chart.series[n + 1].show;
      event.currentTarget.setAttribute("aria-pressed", String(isOn));
      chart.setSeries(n + 1, { show: isOn });
    },
  }, sample(spec), spec.name, values[n]));
  const host = el("div");
  place.append(el("section", { class: "chart" }, el("div", { class: "head" }, el("h3", {}, options.title), options.hint ? el("span", { class: "hint" }, options.hint) : null, el("div", { class: "keys" }, moment, keys)), host));
  const tell = (u) => {
    const here = u.cursor.idxs[1];
    moment.textContent = isKnown(here) ? clock(report.windows[Math.min(here, report.windows.length - 1)].t_s) : "";
    shown.forEach((spec, n) => {
      const at = u.cursor.idxs[n + 1];
      values[n].textContent = isKnown(at) && isKnown(spec.values[at]) ? `${options.format(spec.values[at])}${widened(spec, report.windows[at])}` : "";
    });
  };
  const chart = draw(host, report, options, [xs, ...shown.map((spec) => (options.stepped ? held(spec.values) : spec.values))], shown.map((spec) => line(spec, options.stepped)), { setCursor: [tell] });
}

/// Over how many seconds a percentile was taken, where that is more than its window.
function widened(spec, window) {
  const over = spec.over?.(window);
  return isKnown(over) && over > window.for_s ? ` over ${seconds(over)}` : "";
}

function draw(host, report, options, data, series, hooks) {
  const isLog = options.log;
  const y = axes(options.format === time ? tick : options.format, options.axis);
  if (isLog) y[1].splits = logTicks;
  const chart = new uPlot({
    width: Math.max(host.clientWidth, 200), height: options.height ?? 210, padding: [report.events.length > 0 ? 20 : 8, 22, 0, 0],
    legend: { show: false },
    cursor: { dataIdx: options.stepped ? windowAt : undefined, sync: { key: SYNC, scales: ["x", null] }, drag: { x: true, y: false, dist: 8 }, points: { size: 7 }, focus: { prox: -1 } },
    scales: { x: { time: false, range: wholeOr(report.windows) }, y: isLog ? { distr: 3, range: () => options.range } : { range: (u, low, high) => [0, Math.max(high * 1.08, options.least ?? 1)] } },
    axes: y,
    series: [{}, ...series],
    hooks: { drawAxes: [bands(report)], ready: [followTouch], setCursor: hooks.setCursor || [], draw: [...(hooks.draw || []), limitLines(options.limits || []), numbers(report)] },
  }, data, host);
  charts.push({ chart, host });
  return chart;
}

/// The same stretch for every chart, whether its points stand at the begin or amid a window.
function wholeOr(windows) {
  const last = windows[windows.length - 1];
  const [from, until] = [windows[0].t_s, last.t_s + last.for_s];
  return (u, min, max) => (min <= windows[0].t_s + windows[0].for_s / 2 && max >= last.t_s + last.for_s / 2 ? [from, until] : [min, max]);
}

/// The window that holds the cursor, where uPlot would take the nearest begin.
function windowAt(u, series, nearest, x) {
  const at = u.data[0][nearest] > x ? nearest - 1 : nearest;
  return Math.max(0, Math.min(at, u.data[0].length - 2));
}

function zoom(from, to) {
  for (const { chart } of charts) chart.setScale("x", { min: from, max: to });
}

function wholeRun(report) {
  const windows = report.windows;
  const last = windows[windows.length - 1];
  zoom(windows[0].t_s, last.t_s + last.for_s);
}

function redrawCharts() {
  for (const { chart, host } of charts) {
    chart.setSize({ width: Math.max(host.clientWidth, 200), height: chart.height });
  }
}

/// The windows of a latency as a map: time to the right, latency upwards, darker where more.
function heatChart(place, report) {
  const legs = [["response", "response_heat", "response"], ["end-to-end", "end_to_end_heat", "end_to_end"]]
    .filter(([, name]) => report.windows.some((w) => w[name].length > 0));
  if (legs.length === 0) return;
  let leg = legs[0];
  const tip = el("div", { class: "tip" });
  const host = el("div");
  const buttons = legs.map((one) => el("button", { class: "button", type: "button", "aria-pressed": String(one === leg), onclick: () => {
    leg = one;
    buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(legs[n] === leg)));
    chart.redraw();
  } }, one[0]));
  const ramp = el("i", { style: "background: linear-gradient(90deg, var(--stops))" });
  place.append(el("section", { class: "chart" },
    el("div", { class: "head" }, el("h3", {}, "Where the messages lie"), el("span", { class: "hint scale" }, "few", ramp, "many (log)"), legs.length > 1 ? el("div", { class: "row keys" }, buttons) : null),
    host, tip));
  const edges = report.windows.flatMap((w) => legs.flatMap(([, name]) => w[name].map(([edge]) => Math.max(edge, 8))));
  const low = edges.reduce((a, b) => Math.min(a, b), 1e9);
  const high = edges.reduce((a, b) => Math.max(a, b), 0);
  const xs = points(report.windows);
  const chart = draw(host, report, { title: "", format: time, log: true, height: 250, range: [low, high * 1.26] }, [xs, xs.map(() => null)], [{ points: { show: false } }], {
    draw: [(u) => paintHeat(u, report.windows, leg[1])],
    setCursor: [(u) => { tip.textContent = heatTip(u, report.windows, leg[1]); }],
  });
}

/// The buckets' edges: the preferred numbers R10 (ISO 3), as the report counts them.
const R10 = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];

function nextEdge(edge) {
  if (edge === 0) return 10;
  const decade = 10 ** Math.floor(Math.log10(edge) + 1e-9);
  const at = R10.findIndex((step) => Math.floor((step * decade) / 100) === edge);
  return at === R10.length - 1 ? decade * 10 : Math.floor((R10[at + 1] * decade) / 100);
}

function paintHeat(u, windows, name) {
  const { ctx, bbox } = u;
  const most = windows.reduce((all, w) => w[name].reduce((m, [, n]) => Math.max(m, n / w.for_s), all), 1);
  const colors = palette(style("--heat").split(" "));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const w of windows) {
    const left = Math.round(u.valToPos(w.t_s, "x", true));
    const right = Math.round(u.valToPos(w.t_s + w.for_s, "x", true));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    for (const [edge, n] of w[name]) {
      const top = Math.round(u.valToPos(nextEdge(edge), "y", true));
      const bottom = Math.round(u.valToPos(Math.max(edge, 8), "y", true));
      ctx.fillStyle = colors[Math.min(255, Math.floor(256 * Math.log1p(n / w.for_s) / Math.log1p(most)))];
      ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top);
    }
  }
  ctx.restore();
}

function heatTip(u, windows, name) {
  const at = u.cursor.idx;
  if (!isKnown(at) || u.cursor.left < 0) return "";
  const y = u.posToVal(u.cursor.top, "y");
  const cell = windows[at][name].find(([edge]) => edge <= y && y < nextEdge(edge));
  return cell ? `${clock(windows[at].t_s)}  ${time(cell[0])} to ${time(nextEdge(cell[0]))}: ${count(cell[1])}` : "";
}

/// 256 colours between the given stops, interpolated in sRGB.
function palette(stops) {
  const rgb = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, n) => {
    const place = (n / 255) * (rgb.length - 1);
    const from = Math.min(Math.floor(place), rgb.length - 2);
    const mix = rgb[from].map((part, c) => Math.round(part + (rgb[from + 1][c] - part) * (place - from)));
    return `rgb(${mix.join(",")})`;
  });
}
