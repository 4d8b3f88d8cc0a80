// The ledger as a flow: what was due, what was sent, how it ended, what arrived.

const TONES = {
  due: "--offered", sent: "--issued", shed: "--none", accepted: "--accepted", rejected: "--completed", timed_out: "--invalid",
  broken: "--fail", unacknowledged: "--p90", in_flight: "--muted", arrived: "--arrived", lost: "--fail", absent: "--none", outstanding: "--invalid",
};

const STATES = ["accepted", "rejected", "timed_out", "broken", "unacknowledged", "in_flight"];

const plain = (name) => name.replaceAll("_", " ");

/// The backends as [name, account], in the order of the scenario.
const backendsInOrder = (report) => Object.entries(report.ledger.by_backend).sort((a, b) => (a[1].number ?? 0) - (b[1].number ?? 0));

/// What a backend is called in a sentence: by its name, unless the scenario gave it none.
const backendName = (name) => (["backend", "store"].includes(name) ? `the ${name}` : `backend ${name}`);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/// Nodes by column and the links between them, from the ledger and the first backend's table.
function ledgerGraph(report) {
  const ledger = report.ledger.uplink;
  const nodes = [];
  const links = [];
  const node = (id, column, value, label, detail) => { if (value > 0) nodes.push({ id, column, value, label, detail }); };
  const link = (from, to, value) => { if (value > 0) links.push({ from, to, value }); };
  node("due", 0, ledger.sent + ledger.shed, "due");
  node("sent", 1, ledger.sent, "sent");
  node("shed", 1, ledger.shed, "shed", causes(ledger.shed_by_cause));
  link("due", "sent", ledger.sent);
  link("due", "shed", ledger.shed);
  const details = { rejected: causes(ledger.rejected_by_code), broken: causes(ledger.broken_by_cause) };
  for (const state of STATES) {
    node(state, 2, ledger[state], plain(state), details[state]);
    link("sent", state, ledger[state]);
  }
  const [first] = backendsInOrder(report);
  if (first) arrivalGraph(first[1].table, node, link);
  return { nodes, links };
}

function arrivalGraph(table, node, link) {
  const of = (column, state) => table[state]?.[column] ?? 0;
  const total = (column, states) => states.reduce((all, state) => all + of(column, state), 0);
  const promised = ["accepted", "unacknowledged"];
  const others = STATES.filter((state) => !promised.includes(state));
  node("arrived", 3, total("arrived", STATES), "arrived");
  node("lost", 3, total("absent", promised), "lost");
  node("absent", 3, total("absent", others) + total("outstanding", others), "not delivered");
  node("outstanding", 3, total("outstanding", promised), "outstanding");
  for (const state of STATES) {
    link(state, "arrived", of("arrived", state));
    if (promised.includes(state)) {
      link(state, "lost", of("absent", state));
      link(state, "outstanding", of("outstanding", state));
    } else link(state, "absent", of("absent", state) + of("outstanding", state));
  }
}

function causes(map) {
  const list = Object.entries(map || {}).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  return list.map(([cause, n]) => `${cause} ${count(n)}`).join(", ");
}

/// Places the nodes: heights in proportion, but never so low that a few lost messages vanish.
function layOut(graph, width) {
  const [slot, gap, bar, top] = [40, 6, 12, 26];
  const columns = [0, 1, 2, 3].map((n) => graph.nodes.filter((node) => node.column === n)).filter((column) => column.length > 0);
  const due = columns[0]?.[0]?.value || 1;
  const scale = 190 / due;
  const step = (width - 165) / Math.max(columns.length - 1, 1);
  let height = 0;
  columns.forEach((column, n) => {
    let y = top;
    for (const node of column) {
      node.x = n * step;
      node.y = y;
      node.height = Math.max(node.value * scale, 4);
      node.out = node.into = 0;
      y += Math.max(node.height, slot) + gap;
    }
    height = Math.max(height, y);
  });
  const by = Object.fromEntries(graph.nodes.map((node) => [node.id, node]));
  for (const link of graph.links) {
    link.thick = Math.max(link.value * scale, 2);
    [link.a, link.b] = [by[link.from], by[link.to]];
  }
  return { columns, bar, height: height + 4, due };
}

function flowDiagram(graph, width) {
  const { columns, bar, height, due } = layOut(graph, width);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "The ledger as a flow from due to arrived" });
  const titles = ["due", "handed to the network", "how it ended for the device", "at the backend"];
  columns.forEach((column) => picture.append(svg("text", { class: "column", x: column[0].x, y: 12 }, titles[column[0].column])));
  for (const link of graph.links) picture.append(ribbon(link, bar));
  for (const node of graph.nodes) picture.append(nodeBar(node, bar), nodeLabel(node, bar, due));
  return picture;
}

function ribbon(link, bar) {
  const { a, b, thick } = link;
  const [x0, x1] = [a.x + bar, b.x];
  // A link thicker than its share of a low node would stick out, so it starts at most at its end.
  const [y0, y1] = [a.y + Math.min(a.out, Math.max(a.height - thick, 0)), b.y + Math.min(b.into, Math.max(b.height - thick, 0))];
  a.out += thick;
  b.into += thick;
  const middle = (x0 + x1) / 2;
  const d = `M${x0},${y0} C${middle},${y0} ${middle},${y1} ${x1},${y1} L${x1},${y1 + thick} C${middle},${y1 + thick} ${middle},${y0 + thick} ${x0},${y0 + thick} Z`;
  return svg("path", { d, fill: `var(${TONES[link.to]})`, opacity: 0.26 }, svg("title", {}, `${plain(link.from)} to ${plain(link.to)}: ${count(link.value)}`));
}

function nodeBar(node, bar) {
  return svg("rect", { x: node.x, y: node.y, width: bar, height: node.height, rx: 2.5, fill: `var(${TONES[node.id]})` }, svg("title", {}, `${node.label}: ${count(node.value)}${node.detail ? ` (${node.detail})` : ""}`));
}

function nodeLabel(node, bar, due) {
  const middle = node.y + Math.max(Math.min(node.height, 190) / 2, 13);
  const x = node.x + bar + 8;
  const share = node.id === "due" ? "" : ` \u00b7 ${percent(node.value / due)}`;
  return svg("g", {},
    svg("text", { x, y: middle - 2, "font-weight": 640 }, `${count(node.value)} ${node.label}`),
    svg("text", { class: "sub", x, y: middle + 14 }, (node.detail ? node.detail.slice(0, 24) : "") || share.replace(/^ \u00b7 /, "")));
}

/// The same as a list, for narrow screens and for readers that do not see pictures.
function flowTree(graph) {
  const depth = { 0: 0, 1: 1, 2: 2, 3: 1 };
  const due = graph.nodes[0]?.value || 1;
  return el("div", { class: "tree" }, graph.nodes.map((node) => el("div", { style: `margin-left:${depth[node.column] * 16}px` },
    el("div", { class: "line" }, el("span", {}, term(node.label), node.detail ? el("span", { class: "why" }, ` ${node.detail}`) : null), el("b", {}, count(node.value))),
    el("div", { class: "fill" }, el("i", { style: `width:${(100 * node.value) / due}%;background:var(${TONES[node.id]})` })))));
}
