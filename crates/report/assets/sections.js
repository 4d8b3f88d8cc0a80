// The sections below the charts: ledger, rules, streams, links, generator, environment, scenario.

let redrawFlow = () => {};

function ledger() {
  const uplink = report.ledger.uplink;
  const isClosed = uplink.residue === 0;
  const state = !isKnown(uplink.residue) ? "none" : isClosed ? "pass" : "invalid";
  const words = !isKnown(uplink.residue) ? "residue not known" : isClosed ? "residue 0: the ledger closes" : `residue ${count(uplink.residue)}: the ledger does not close`;
  const place = card("Where every message went", el("span", { class: `closes tone-${state}` }, icon(state), term("residue", words)));
  const graph = ledgerGraph(report);
  const flow = el("div", { class: "flow" });
  redrawFlow = () => flow.replaceChildren(flowDiagram(ledgerGraph(report), Math.max(page.clientWidth - 94, 560)), flowTree(ledgerGraph(report)));
  if (graph.nodes.length > 0) redrawFlow();
  const hint = el("p", { class: "hint" }, "Warm-up and measured phase together: what the platform's own account must equal.");
  return fill(place, {}, [flow, hint, equations(uplink), arrivals(), cohorts(), backends(), commands(), subscribers()]);
}

const COMMANDS = ["queries", "received_by_query", "no_command", "query_rejected", "query_timed_out", "query_broken", "query_in_flight", "scheduled", "withheld", "issued", "delivered", "expired", "undeliverable", "unknown", "received", "received_again", "received_foreign", "received_damaged", "delivered_not_received", "received_not_delivered",
  "one_way", "answered", "answer_rejected", "answer_timed_out", "answer_broken", "answer_in_flight", "answer_shed", "replies_arrived", "replies_lost", "replies_outstanding", "replies_unanswered", "replies_again", "replies_foreign", "replies_damaged"];

/// What can become of a query that was due, and whether it is told as bad.
const QUERIES_DUE = [["received_by_query", "with a command"], ["no_command", "without"], ["rejected", "rejected", true], ["timed_out", "timed out", true], ["broken", "broken", true], ["in_flight", "in flight", true], ["shed", "never sent", true]];

/// What became of commands and queries; nothing where the scenario has none.
function commands() {
  const one = report.ledger.command;
  if (!one) return null;
  const bad = ["delivered_not_received", "replies_lost", "received_damaged", "replies_damaged"];
  const rows = COMMANDS.map((name) => [plain(name), n(one[name], bad.includes(name) && one[name] > 0)]);
  const stood = Object.entries(one.by_presence || {}).map(([name, row]) => [plain(name), n(row.scheduled), n(row.delivered), n(row.received), n(row.replies_arrived)]);
  const places = stood.length === 0 ? null : table(["the device was", ["due", "n"], ["delivered", "n"], ["received", "n"], ["replies arrived", "n"]], stood);
  const parts = [["cold", one.queries_cold], ["warm", one.queries_warm]].filter(([, part]) => part);
  const due = parts.map(([name, part]) => [name, ...QUERIES_DUE.map(([key, , isBad]) => n(part[key], isBad && part[key] > 0))]);
  const apart = due.length === 0 ? null : table(["queries due", ...QUERIES_DUE.map(([, head]) => [head, "n"])], due);
  const words = isKnown(one.residue) ? `residue ${count(one.residue)}` : "residue not known";
  return [el("p", { class: "hint" }, `Commands: ${count(one.issued)} issued, ${count(one.delivered)} delivered as the platform says, ${count(one.received)} received as the devices say; ${words}.`), equations(one), apart, places, offlineQueue(one.offline_queue, "commands"), details("Every count of commands", table(["", ["whole run", "n"]], rows))];
}

/// What devices got that subscribe to other devices' messages.
function subscribers() {
  const one = report.ledger.receive;
  if (!one) return null;
  const names = ["expected", "consumed", "arrived", "lost", "outstanding", "duplicates", "duplicate_own", "reordered", "unexpected", "corrupted", "foreign", "unstamped"];
  const rows = names.map((name) => [plain(name), n(one[name], name === "lost" && one[name] > 0)]);
  const each = Object.entries(one.by_subscriber).map(([name, row]) => [name, n(row.expected), n(row.arrived), n(row.again), n(row.lost, row.lost > 0)]);
  return [equations(one), offlineQueue(one.offline_queue, "messages"), details(`${count(one.subscribers)} subscriptions of devices: ${count(one.arrived)} arrived`, table(["", ["all together", "n"]], rows)),
    details("Each subscription", table(["subscription", ["expected", "n"], ["arrived", "n"], ["again", "n"], ["lost", "n"]], each))];
}

/// How what was kept for devices that were offline came to them.
function offlineQueue(one, what) {
  if (!one) return null;
  const [began, ended] = [one.began_s, one.ended_s];
  const span = isKnown(began) && isKnown(ended) ? `, from ${began.toFixed(1)} s to ${ended.toFixed(1)} s` : "";
  const speed = isKnown(one.rate) ? `, ${rate(one.rate)} a second` : "";
  const slowest = one.slowest && one.took ? `; longest ${time(one.took.max_us)} (${one.slowest})` : "";
  const words = `For ${count(one.devices)} devices that were offline: ${count(one.drained)} of ${count(one.expected)} ${what} came${span}${speed}${slowest}.`;
  const took = one.took || {};
  const counts = [["devices back", one.returned], ["sessions forgotten", one.forgotten, true], ["lost", one.lost, true], ["outstanding", one.outstanding, true], ["duplicates", one.duplicates, true], ["out of order", one.reordered, true], ["devices not drained", one.incomplete, true]];
  const heads = [...counts.map(([name]) => [name, "n"]), ...["p50", "p99", "max"].map((name) => [`took, ${name}`, "n"])];
  const cells = [...counts.map(([, value, isBad]) => n(value, isBad && value > 0)), ...["p50_us", "p99_us", "max_us"].map((name) => ({ text: time(took[name]), n: true }))];
  return [el("p", { class: "hint" }, words), table(heads, [cells])];
}

function equations(uplink) {
  const broken = uplink.equations || [];
  return broken.length === 0 ? null : table(["equation that does not hold", ["left", "n"], ["right", "n"], ["difference", "n"]], broken.map((e) => [e.name, n(e.left), n(e.right), n(e.difference, true)]));
}

const ARRIVALS = ["arrived", "lost", "lost_unacknowledged", "outstanding", "late", "duplicates", "duplicate_own", "split", "reordered", "corrupted"];

/// What each of several backends got; of a single one the picture and the counts tell all.
function arrivals() {
  const all = backendsInOrder(report);
  if (all.length < 2) return null;
  const [always, bad] = [["arrived", "lost", "outstanding", "duplicates"], ["lost", "lost_unacknowledged", "outstanding", "corrupted", "duplicates"]];
  const columns = ARRIVALS.filter((column) => always.includes(column) || all.some(([, one]) => one[column] > 0));
  const rows = all.map(([name, one]) => [name, ...columns.map((column) => n(one[column], bad.includes(column) && one[column] > 0))]);
  return [el("p", { class: "hint" }, `Arrivals in the picture are those at ${backendName(all[0][0])}, the first of ${all.length}.`), table(["backend", ...columns.map((column) => [plain(column), "n"])], rows)];
}

const COHORT = ["nominal", "scheduled", "omitted", "failed", "shed", "sent", "accepted", "rejected", "timed_out", "broken", "unacknowledged", "in_flight", "arrived", "lost", "lost_unacknowledged", "outstanding", "late", "duplicates", "duplicate_own", "reordered", "corrupted", "foreign", "unstamped",
  "rejected_but_arrived", "timed_out_but_arrived", "broken_but_arrived", "consumed", "completed", "incomplete", "refused_unawaited", "no_subscriber", "transport_acknowledged", "retransmitted", "retried", "answered_late", "bytes_payload", "bytes_wire"];

/// Every count, of the whole run and of the cohort due while measuring.
function cohorts() {
  const { uplink, measured } = report.ledger;
  const bad = ["lost", "lost_unacknowledged", "outstanding", "corrupted", "duplicates"];
  const cell = (book, name) => (name.startsWith("bytes") ? { text: bytes(book[name]), n: true } : n(book[name], bad.includes(name) && book[name] > 0));
  const rows = COHORT.map((name) => [term(plain(name)), cell(uplink, name), cell(measured, name)]);
  return details("Every count", table(["", ["whole run", "n"], ["due while measuring", "n"]], rows));
}

function backends() {
  return backendsInOrder(report).map(([name, backend]) => {
    const rows = STATES.filter((state) => backend.table[state]).map((state) => {
      const row = backend.table[state];
      const isPromise = state === "accepted" || state === "unacknowledged";
      const cells = [plain(state), n(row.arrived), n(row.absent, isPromise && row.absent > 0), n(row.outstanding, row.outstanding > 0), ...(backend.is_store ? [n(row.overwritten)] : [])];
      return backend.sample ? [...cells, n(row.outside_sample)] : cells;
    });
    const { sample } = backend;
    const replaced = backend.is_store ? [["overwritten", "n"]] : [];
    const outside = sample ? [[`outside the sample of ${count(sample.devices)} of ${count(sample.of)} devices`, "n"]] : [];
    const twice = backend.split > 0 ? el("p", { class: "hint" }, `${capital(backendName(name))}: ${count(backend.split)} messages were first at two consumers in processes of their own; the windows count them twice.`) : null;
    return [
      twice,
      details(`${capital(backendName(name))}: what the device was told against what ${backend.is_store ? "is stored" : "arrived"}`, table(["the device was told", [backend.is_store ? "stored" : "arrived", "n"], ["absent", "n"], [backend.is_store ? "not read" : "outstanding", "n"], ...replaced, ...outside], rows)),
      idList(`${capital(backendName(name))}: ids of the ${backend.is_store ? "messages that are not stored" : "lost messages"}`, backend.lost_ids),
      idList(`${capital(backendName(name))}: ids of the overwritten messages`, backend.overwritten_ids),
    ];
  });
}

/// Messages by device and stream, as runs of their numbers.
function idList(title, { truncated, ...of }) {
  const ids = Object.entries(of).map(([id, runs]) => `${id}  ${runs.map(([a, b]) => (a === b ? a : `${a}..${b}`)).join(", ")}`);
  return ids.length > 0 ? details(`${title}${truncated ? " (the first ones)" : ""}`, el("pre", {}, ids.join("\n"))) : null;
}

const details = (title, ...content) => el("details", {}, el("summary", {}, title), content);
const opened = (node) => fill(node, { open: "" }, []);

const n = (value, isBad = false) => ({ text: count(value), n: true, bad: isBad, zero: !value });

function table(names, rows) {
  const cell = (c) => (typeof c === "object" && c !== null && !(c instanceof Node) ? el("td", { class: [c.n && "n", c.bad && "bad", !c.bad && c.zero && "zero"].filter(Boolean).join(" ") }, c.text) : el("td", {}, c));
  return el("div", { class: "scroll" }, el("table", {}, head(names), el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

const isTold = (rule) => rule.kind === "stability" && !rule.named;

const KINDS = [
  ["The platform: a broken rule fails the run", (rule) => rule.kind !== "validity" && !isTold(rule)],
  ["The generator: a broken rule makes the run invalid", (rule) => rule.kind === "validity"],
  ["Told, not judged", isTold],
];

/// Broken rules first, then those that were not evaluated.
const inOrder = (rules) => ["fail", "not-evaluated", "pass"].flatMap((result) => rules.filter((rule) => rule.result === result));

function rules() {
  const all = report.verdict.rules;
  if (all.length === 0) return null;
  // What holds of the generator is a long list of nothing.
  const folded = all.filter((rule) => rule.kind === "validity" && rule.result === "pass");
  const rows = KINDS.flatMap(([title, isOfKind]) => {
    const some = inOrder(all.filter((rule) => isOfKind(rule) && !folded.includes(rule)));
    return some.length === 0 ? [] : [el("tr", { class: "group" }, el("td", { colspan: 6, class: "wide" }, title)), some.map(ruleRow)];
  });
  return card("Rules", el("span", { class: "hint" }, rulesInWords(report.verdict.counts)), ruleTable(rows),
    folded.length > 0 ? details(`${folded.length} rules on the generator hold`, ruleTable(folded.map(ruleRow))) : null);
}

/// The counts of the verdict, in the words of every form of the report.
function rulesInWords(counts) {
  const others = [[counts.fail, "fail"], [counts.not_evaluated, "not evaluated"], [counts.not_judged, "fail and are not judged"]].filter(([many]) => many > 0);
  const hold = counts.hold === counts.rules ? `${count(counts.rules)} rules hold` : `${count(counts.hold)} of ${count(counts.rules)} rules hold`;
  return [hold, ...others.map(([many, word]) => `${count(many)} ${word}`)].join(", ");
}

const ruleTable = (rows) => el("div", { class: "scroll" }, el("table", { class: "stack rules" }, head(["", "rule", ["observed", "n"], ["allowed", "n"], ["since", "n"], "evidence"]), el("tbody", {}, rows)));

function ruleRow(rule) {
  const result = rule.result === "not-evaluated" ? "none" : rule.result === "fail" && !isTargets(rule) ? "invalid" : rule.result;
  const bad = rule.result === "fail" ? "n bad" : "n";
  return el("tr", {},
    el("td", { class: rule.result === "not-evaluated" ? "wide long" : "wide" }, el("span", { class: `mark tone-${tone(result)}` }, icon(result), term(rule.result.replace("-", " ")))),
    el("td", { class: "name" }, term(rule.rule), placeOf(rule) ? el("div", { class: "why" }, placeOf(rule)) : null, rule.except.length > 0 ? el("div", { class: "why" }, `without ${rule.except.join(", ")}`) : null),
    el("td", { class: bad }, isKnown(rule.observed) ? observed(rule) : ""),
    el("td", { class: "n wide", "data-name": "" }, isKnown(rule.bound) ? allowed(rule) : ""),
    isKnown(rule.since_s) ? el("td", { class: "n wide", "data-name": "since" }, clock(rule.since_s)) : el("td", { class: "n" }),
    el("td", { class: "why wide evidence" }, unbroken(rule.evidence), rule.note ? ` (${rule.note})` : null));
}

const PERCENTILES = ["p50_us", "p90_us", "p95_us", "p99_us", "p99_9_us"];

const LEGS = [["response", "response"], ["service", "service"], ["end_to_end", "end-to-end"], ["held", "held"], ["lateness", "lateness (own)"], ["connect", "connect"], ["command_request", "command request"], ["command_response", "command response"], ["command_loop", "command loop"]];

/// Which legs the messages kept apart as cold have for themselves.
const APART = ["response", "end_to_end", "command_request", "command_response", "command_loop"];

/// One row a leg; below it its cold and its warm messages, where the scenario keeps them apart.
function latencies(of) {
  const rows = LEGS.filter(([leg]) => of.latency[leg]).flatMap(([leg, name]) => [
    ...latencyRows(name, of.latency[leg]),
    ...[["cold", of.latency_cold], ["warm", of.latency_warm]].filter(([, legs]) => legs?.[leg] && APART.includes(leg)).flatMap(([part, legs]) => latencyRows(el("span", { class: "part" }, term(part)), legs[leg])),
  ]);
  const names = ["", "mean", "p50", "p90", "p95", "p99", "p99.9", "max", "answered", "censored"];
  return table(names.map((name, at) => (at === 0 ? name : [name, "n"])), rows);
}

/// The answered; below them all due, the unanswered at their lower bound, where that differs.
function latencyRows(name, one) {
  const t = (us) => ({ text: time(us), n: true, zero: !isKnown(us) });
  const rows = [[typeof name === "string" ? term(name) : name, t(one.mean_us), ...PERCENTILES.map((p) => t(one[p])), t(one.max_us), n(one.count), n(one.censored)]];
  const due = (p) => ({ text: `${one.all_due.at_least?.includes(p) ? "\u2265\u00a0" : ""}${time(one.all_due[p])}`, n: true, zero: !isKnown(one.all_due[p]) });
  if (one.all_due && PERCENTILES.some((p) => due(p).text !== time(one[p]))) rows.push([el("span", { class: "part" }, term("of all due")), "", ...PERCENTILES.map(due), "", n(one.count + one.censored), ""]);
  return rows;
}

/// Which messages are cold, in words; nothing where none are kept apart.
function coldInWords() {
  if (!report.latency_cold) return null;
  const cold = report.scenario?.cold || {};
  const which = cold.first ? `those due in the first ${String(cold.first).replace(/([a-z]+)$/, "\u00a0$1")} of the measured phase` : "the first message of each device, wherever it was due";
  return el("p", { class: "hint" }, `Cold: ${which}; warm: the others due while measuring.`);
}

function streams() {
  const all = Object.entries(report.ledger.by_stream);
  if (!Object.values(report.latency).some(isKnown)) return null;
  const place = card("Latency", el("span", { class: "hint" }, "due while measuring; a percentile is shown from 10 / (1 \u2212 X) values on"), latencies(report), coldInWords());
  if (all.length > 1) {
    const rows = all.map(([name, one]) => [name, { text: rate(one.rates.offered), n: true }, { text: rate(one.rates.completed), n: true }, { text: rate(one.rates.arrived), n: true }, { text: time(one.latency.response?.p99_us), n: true }, { text: time(one.latency.end_to_end?.p99_us), n: true }, n(one.ledger.lost, one.ledger.lost > 0)]);
    place.append(el("h3", { style: "margin-top:22px" }, "By stream"), table(["", ["offered /s", "n"], ["answered /s", "n"], ["arrived /s", "n"], ["response p99", "n"], ["end-to-end p99", "n"], ["lost", "n"]], rows));
    all.forEach(([name, one]) => place.append(details(name, latencies(one))));
  }
  return place;
}

/// A row a step of a run whose rate changes by stages, with the rules that it breaks; nothing for other runs.
function stepTable() {
  const all = report.steps || [];
  if (all.length === 0) return null;
  const due = (leg, p) => ({ text: leg ? headline(leg, p).join("\u00a0") : DASH, n: true });
  const stated = (step) => (step.is_hold ? rate(step.rate) : `${rate(step.rate)} \u2192 ${rate(step.rate_until)}`);
  const shown = ["response p50", "response p99", "end-to-end p99"];
  const isFurther = (rule) => rule.kind === "slo" && isKnown(rule.bound) && isKnown(rule.bound.us) && !shown.includes(titleOf(rule));
  const further = [...new Set(all.flatMap((step) => step.rules.filter(isFurther).map(titleOf)))];
  const named = (step) => further.map((name) => step.rules.find((rule) => isFurther(rule) && titleOf(rule) === name)).map((rule) => ({ text: rule && isKnown(rule.observed) ? observed(rule) : DASH, n: true }));
  const mark = (step) => el("span", { class: `mark tone-${tone(step.result)}` }, icon(step.result || "none"), step.result || "not judged");
  const rows = all.map((step) => [String(step.step), `${clock(step.from_s)}\u2013${clock(step.until_s)}`, { text: stated(step), n: true }, { text: rate(step.rates.issued), n: true }, due(step.latency.response, "p50_us"), due(step.latency.response, "p99_us"), due(step.latency.end_to_end, "p99_us"), ...named(step),
    n(step.ledger.failed, step.ledger.failed > 0), n(step.ledger.lost, step.ledger.lost > 0), el("div", {}, mark(step), brokenOf(step.rules))]);
  return card("Steps", el("span", { class: "hint" }, "a message belongs to the step in which it was due; percentiles are of all due"),
    table(["", "", ["stated /s", "n"], ["issued /s", "n"], ["response p50", "n"], ["response p99", "n"], ["end-to-end p99", "n"], ...further.map((name) => [name, "n"]), ["failed", "n"], ["lost", "n"], "result"], rows));
}

function twoColumns() {
  return el("div", { class: "grid" }, links(), generator(), report.windows.some((w) => w.generator) ? health() : null, target(), counted());
}

const list = (rows) => el("dl", {}, rows.filter(Boolean).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

function links() {
  const own = report.links;
  const by = (map) => Object.entries(map).sort((a, b) => b[1] - a[1]).map(([cause, many]) => [`\u2003${cause}`, count(many)]);
  return card("Links", null, list([
    isKnown(own.wanted) ? ["wanted", count(own.wanted)] : null, isKnown(own.up_at_start) ? ["up after the connect phase", count(own.up_at_start)] : null,
    ["opened", count(own.opened)], ["connected", count(own.connected)], ["connect failures", count(sum(own.connect_failures))], ...by(own.connect_failures),
    ["disconnects", count(sum(own.disconnects))], ...by(own.disconnects), ["open at the end", count(own.open_at_end)],
  ]));
}

function generator() {
  const own = report.generator;
  return card("The generator itself", null, list([
    ["CPU", seconds(own.cpu_s)], ["\u2003device shards", seconds(own.shards_cpu_s)], ["\u2003consumers", seconds(own.consumers_cpu_s)],
    ["messages per CPU-second of the shards", rate(own.messages_per_cpu_s)], ["largest resident set", bytes(own.peak_rss_bytes)], ["user memory a device", bytes(own.user_bytes_per_device)], ["lateness p99", time(own.lateness_p99_us)],
    ...Object.entries(report.ledger.by_stream).filter(([, of]) => isKnown(of.burst_us)).map(([name, of]) => [`bursts of ${name}: due to sent, at most`, time(of.burst_us)]),
    ...own.health.map((of) => [`${of.figure} (${of.name})`, percent(of.share)]),
  ]));
}

function health() {
  const place = card("The generator's health", null, el("p", { class: "hint" }, "worst thread, share of a CPU"));
  const of = (name) => report.windows.map((w) => (w.generator && isKnown(w.generator[name]) ? w.generator[name] : null));
  later.push(() => lineChart(place, report, { title: "CPU", format: percent, height: 150, least: 0.2, axis: 56, lines: [
    { name: "shard", color: "--issued", values: of("shard_cpu") }, { name: "consumer", color: "--arrived", dash: [2, 3], values: of("consumer_cpu") },
    { name: "waiting", color: "--fail", values: of("cpu_wait") }, { name: "steal", color: "--none", dash: [6, 3], values: of("steal") },
  ] }));
  return place;
}

const later = [];

function target() {
  const { cpu, memory } = report.target;
  const names = [...new Set([cpu, memory].flatMap((map) => Object.keys(map || {})))];
  const rows = names.map((name) => [name, { text: seconds(cpu?.[name]), n: true }, { text: bytes(memory?.[name]), n: true }]);
  return names.length === 0 ? null : card("The target", null, table(["process", ["CPU", "n"], ["largest resident set", "n"]], rows));
}

function counted() {
  const own = report.target.counted;
  if (!own) return null;
  const row = (name, of) => [name, { text: count(of.messages), n: true }, { text: rate(of.rate), n: true }, { text: rate(of.average), n: true }];
  const hint = `accepted ${count(own.accepted)}, without an answer ${count(own.unanswered)}, difference ${own.difference}; messages of others count too`;
  return card("Counts of the rule engine", el("span", { class: "hint" }, hint),
    table(["node", ["messages", "n"], ["/s", "n"], ["average of the counts", "n"]], [...own.nodes.map((of) => row(of.node, of)), row("total", own)]));
}

/// Indented like YAML, which is how scenarios are written.
function outline(value, indent = "") {
  if (value === null || typeof value !== "object") return typeof value === "string" && (value === "" || /[:#{}\[\],&*!|>'"%@`]|^\s|\s$/.test(value)) ? JSON.stringify(value) : String(value);
  const entries = Array.isArray(value) ? value.map((one) => ["-", one]) : Object.entries(value);
  if (entries.length === 0) return Array.isArray(value) ? "[]" : "{}";
  return entries.map(([key, one]) => {
    const isNested = one !== null && typeof one === "object" && Object.keys(one).length > 0;
    if (key === "-" && Array.isArray(value)) return `\n${indent}- ${outline(one, `${indent}  `).trimStart()}`;
    return `\n${indent}${key}:${isNested ? outline(one, `${indent}  `) : ` ${outline(one)}`}`;
  }).join("");
}

function scenario() {
  const place = card("As it was run", null);
  if (report.scenario !== null) place.append(opened(details("Scenario, resolved, secrets masked", el("pre", {}, outline(report.scenario).trimStart()))));
  if (report.environment !== null) place.append(details("Environment", el("pre", {}, outline(report.environment).trimStart())));
  if (Object.keys(report.published).length > 0) place.append(details("Figures by published formulas", el("pre", {}, outline(report.published).trimStart())));
  place.append(el("p", { class: "hint", style: "margin-top:12px" }, "Phases: ", report.phases.map((p) => `${p.phase} ${seconds(p.until_s - p.from_s)}`).join(", ") || DASH));
  return place;
}

function foot() {
  return el("footer", { class: "end" }, el("span", {}, `muster ${report.muster}, ${report.schema}`), report.scenario_sha256 ? el("span", { class: "mono" }, `scenario sha256 ${report.scenario_sha256}`) : null);
}
