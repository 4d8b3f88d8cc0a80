"""Wraps a report's page in a frame of some width and adds a script that measures it.

page.py PAGE WIDTH prints a document; once a browser has loaded it, its body holds one line for each fault:
an error of its script, a page that is wider than the frame, cells of one row that overlap, words that are
broken, text at the very edge of the verdict, remedies in the column of names, lower bounds that are not marked.
"""

import html
import sys

LISTEN = '<head><script>window.errors = []; addEventListener("error", (e) => window.errors.push(e.message));</script>'

MEASURE = """
const faults = [];
const boxes = (node, of) => {
  const range = of.createRange();
  range.selectNodeContents(node);
  return [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
};
const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;

function rowsOverlap(of) {
  for (const row of of.querySelectorAll("table tr")) {
    const cells = [...row.cells].map((cell) => [cell, boxes(cell, of)]);
    for (const [at, [cell, mine]] of cells.entries()) {
      for (const [other, theirs] of cells.slice(at + 1)) {
        if (mine.some((a) => theirs.some((b) => overlap(a, b)))) faults.push(`overprint: ${cell.textContent} / ${other.textContent}`);
      }
    }
  }
}

function wordsBreak(of) {
  const walker = of.createTreeWalker(of.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.closest("td, th, .name, .what, h1, h2, h3, dt")) continue;
    for (const word of node.textContent.matchAll(/[A-Za-z0-9]{2,24}/g)) {
      const range = of.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) faults.push(`broken: ${word[0]}`);
    }
  }
}

/// The text of the verdict keeps a distance from its edges.
function edges(of) {
  const verdict = of.querySelector(".verdict");
  const edge = verdict.getBoundingClientRect();
  for (const node of verdict.querySelectorAll("p, li, h1, .facts")) {
    for (const box of boxes(node, of)) {
      if (box.left < edge.left + 12 || box.right > edge.right - 12) faults.push(`at the edge: ${node.textContent}`);
    }
  }
}

/// Where reasons have columns, a remedy is not squeezed into that of the rules' names.
function remedies(of) {
  for (const remedy of of.querySelectorAll(".reasons .remedy")) {
    const [name, own] = [remedy.parentElement.querySelector(".what"), remedy].map((node) => node.getBoundingClientRect());
    const isBeside = own.left >= name.right;
    if (!isBeside && own.width < remedy.parentElement.clientWidth - 1) faults.push(`squeezed: ${remedy.textContent}`);
  }
}

/// The tiles do not show less than all due, and mark a lower bound as the table below does.
function tiles(of) {
  const response = JSON.parse(of.getElementById("data").textContent).latency.response;
  for (const name of ["p50", "p99"]) {
    const tile = [...of.querySelectorAll(".kpi")].find((one) => one.querySelector(".name").textContent === `response ${name}`);
    const isBound = response?.censored > 0 && response.all_due?.at_least?.includes(`${name}_us`);
    if (tile && tile.querySelector(".figure").textContent.startsWith("\u2265") !== Boolean(isBound)) faults.push(`marked wrongly: ${tile.textContent}`);
  }
}

const frame = document.querySelector("iframe");
frame.addEventListener("load", () => setTimeout(() => {
  const of = frame.contentDocument;
  frame.contentWindow.errors.forEach((error) => faults.push(`script: ${error}`));
  if (!of.querySelector("table.rules")) faults.push("the page was not drawn");
  const wide = of.documentElement.scrollWidth;
  if (wide > frame.clientWidth) faults.push(`wide: ${wide} of ${frame.clientWidth}`);
  rowsOverlap(of);
  wordsBreak(of);
  edges(of);
  remedies(of);
  tiles(of);
  document.body.replaceChildren(`measured\\n${faults.join("\\n")}\\n`);
}, 500));
"""


def main():
    page, width = open(sys.argv[1], encoding="utf-8").read(), int(sys.argv[2])
    frame = html.escape(page.replace("<head>", LISTEN, 1), quote=True)
    print(f'<!doctype html><meta charset="utf-8"><body>')
    print(f'<iframe style="border:0;width:{width}px;height:9000px" srcdoc="{frame}"></iframe>')
    print(f"<script>{MEASURE}</script>")


main()
