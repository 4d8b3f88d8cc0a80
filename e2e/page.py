"""Wraps a report's page in a frame of some width and adds a script that measures it.

page.py PAGE WIDTH prints a document; once a browser has loaded it, its body holds one line for each fault:
a page that is wider than the frame, cells of one row that overlap, words that are broken.
"""

import html
import sys

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

const frame = document.querySelector("iframe");
frame.addEventListener("load", () => setTimeout(() => {
  const of = frame.contentDocument;
  if (!of.querySelector("table.rules")) faults.push("the page was not drawn");
  const wide = of.documentElement.scrollWidth;
  if (wide > frame.clientWidth) faults.push(`wide: ${wide} of ${frame.clientWidth}`);
  rowsOverlap(of);
  wordsBreak(of);
  document.body.replaceChildren(`measured\\n${faults.join("\\n")}\\n`);
}, 500));
"""


def main():
    page, width = open(sys.argv[1], encoding="utf-8").read(), int(sys.argv[2])
    frame = html.escape(page, quote=True)
    print(f'<!doctype html><meta charset="utf-8"><body>')
    print(f'<iframe style="border:0;width:{width}px;height:9000px" srcdoc="{frame}"></iframe>')
    print(f"<script>{MEASURE}</script>")


main()
