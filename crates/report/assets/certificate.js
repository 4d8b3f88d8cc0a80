// The page of a certificate: the answer, the rules declared before the run, the evidence, and the files behind it.

const stated = (rule) => report.verdict.rules.find((one) => titleOf(one) === titleOf(rule));

function certified() {
  const { result } = report.verdict;
  const facts = [["run", report.run], ["started", report.started ? report.started.replace("T", " ").replace("Z", " UTC") : null], ["measured", isKnown(report.measured_s) ? seconds(report.measured_s) : null], ["target", report.environment?.target], ["co-located", report.co_located ? "target on the generator's machine" : null], ["muster", report.muster]];
  return el("section", { class: `card verdict tone-${tone(result)}` },
    el("div", { class: "top" }, el("div", { class: "badge" }, icon(result), el("b", {}, result)), el("div", {}, el("h1", {}, report.name), el("p", { class: "said" }, "Certificate of a load test. `muster verify` recomputes every figure from the windows beside it; only a checked signature says who wrote it."))),
    el("div", { class: "facts" }, facts.filter(([, value]) => isKnown(value)).map(([name, value]) => el("span", {}, el("em", {}, name), el("b", {}, String(value))))));
}

function declaredRules() {
  const row = (rule) => {
    const found = stated(rule);
    return el("tr", {}, el("td", { class: "name" }, rule.rule), el("td", {}, placeOf(rule) || "run"), el("td", {}, rule.named ? "named" : "default"), el("td", { class: "n" }, isKnown(rule.bound) ? allowed(rule) : DASH),
      el("td", { class: "n" }, found ? observed(found) || DASH : DASH), el("td", { class: found?.result === "fail" ? "bad" : "" }, found ? found.result : DASH), el("td", { class: "evidence why" }, found ? unbroken(found.evidence) : ""));
  };
  return card("Rules declared before the run, and the answer", null, el("div", { class: "scroll" }, el("table", {}, head(["rule", "scope", "by", ["allowed", "n"], ["observed", "n"], "result", "evidence"]), el("tbody", {}, report.declared.map(row)))));
}

function certifiedFigures() {
  const { rates, latency, measured } = report.figures;
  const legs = [["response", latency.response], ["service", latency.service], ["end-to-end", latency.end_to_end], ["lateness", latency.lateness]].filter(([, of]) => isKnown(of));
  const percentile = (of, name) => el("td", { class: "n" }, headline(of, name).join("\u00a0").trim());
  return card("Figures of the measured phase", null,
    el("div", { class: "scroll" }, el("table", {}, head(["latency", ["p50", "n"], ["p90", "n"], ["p99", "n"], ["p99.9", "n"]]), el("tbody", {}, legs.map(([name, of]) => el("tr", {}, el("td", {}, name), ["p50_us", "p90_us", "p99_us", "p99_9_us"].map((one) => percentile(of, one))))))),
    el("p", { class: "hint", style: "margin-top:12px" }, `Offered ${rate(rates.offered)}/s, issued ${rate(rates.issued)}/s, accepted ${rate(rates.accepted)}/s, arrived ${rate(rates.arrived)}/s. Scheduled ${count(measured.scheduled)}, failed ${count(measured.failed)}, lost ${count(measured.lost)}.`));
}

function trust() {
  const { health, lateness_p99_us: lateness } = report.generator;
  const rows = [["generator's lateness p99", time(lateness)], ...health.map((one) => [`${one.figure} of ${one.name}`, percent(one.share)]), ["clock source", report.clock.source || DASH], ["clock events", report.clock.events.length === 0 ? "none" : report.clock.events.join("; ")]];
  return card("Generator and clocks", null, el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

function files() {
  const rows = Object.entries(report.files).map(([name, of]) => el("tr", {}, el("td", {}, name), el("td", { class: "n" }, bytes(of.bytes)), el("td", { class: "mono evidence" }, of.sha256)));
  const sums = [["scenario", report.scenario_sha256], ["plan and rules", report.resolved_sha256]].filter(([, sum]) => sum);
  return card("Files behind this page", null, el("div", { class: "scroll" }, el("table", {}, head(["file", ["length", "n"], "SHA-256"]), el("tbody", {}, rows, sums.map(([name, sum]) => el("tr", {}, el("td", {}, name), el("td", {}), el("td", { class: "mono evidence" }, sum)))))),
    details("Scenario, resolved, secrets masked", el("pre", {}, outline(report.scenario).trimStart())), details("Environment", el("pre", {}, outline(report.environment).trimStart())));
}

document.body.prepend(page);
page.append(topBar());
setTheme(preferredTheme(), false);
for (const section of [certified, declaredRules, certifiedFigures, stepTable, trust, files]) {
  const made = section();
  if (made) page.append(made);
}
setTheme(theme(), false);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(preferredTheme(), false));
