// The report in print: A4 pages, no chart, table or text beyond the right margin, and no chart, row of a table or turn of
// an episode divided between two pages. The reports of one run, of two runs and of a run of another trainer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { makeWorkspace } from '../editor.mjs';
import { restoreRun } from '../fixtures/stored-run.mjs';
import { root, tools } from '../install.mjs';
import { mark, pagesOf } from '../pdf-marks.mjs';

const workspace = makeWorkspace({});
const cli = (...args) =>
  execFileSync(process.execPath, [join(root, 'dist', 'cli.cjs'), ...args, '--json'], {
    ...{ cwd: workspace, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] },
  });
let browser;
let runs;

before(async () => {
  const lake = basename(restoreRun(workspace, 'lake-run'));
  const collapsing = basename(restoreRun(workspace, 'collapsing-run'));
  const verl = JSON.parse(cli('attach', join(root, 'test/golden/foreign-runs/verl'), '--once')).run;
  runs = { 'one run': [lake], 'two runs': [lake, collapsing], 'a run of another trainer': [verl] };
  browser = await chromium.launch({ executablePath: tools.chromium, args: ['--no-sandbox', '--disable-gpu'] });
});
after(async () => {
  await browser?.close();
  rmSync(workspace, { recursive: true, force: true });
});

/** 14 mm, the margin at the left and right, in points; rounding may move a box by a point. */
const margin = (14 / 25.4) * 72 - 1;
/** The width between the margins in CSS pixels. */
const printedWidth = Math.floor(((210 - 28) / 25.4) * 96);

/** What must stay together, by its name in messages. */
const together = { chart: 'figure', row: 'tr', fact: 'dl div', turn: '.sides', end: '.end' };

for (const [name, most] of [
  ['one run', 7],
  ['two runs', 11],
  ['a run of another trainer', 3],
])
  test(`the report of ${name} prints on A4`, async () => {
    const file = join(workspace, 'report.html');
    cli('report', ...runs[name], '--out', file, '--force');
    const page = await browser.newPage({ viewport: { width: printedWidth, height: 900 } });
    try {
      await page.goto(`file://${file}`);
      await page.emulateMedia({ media: 'print' });
      const wide = await page.evaluate(width => {
        const elements = [...document.querySelectorAll('main *, footer')].filter(each => !each.closest('svg > *'));
        return elements.flatMap(each => {
          const { right } = each.getBoundingClientRect();
          const isCut = getComputedStyle(each).overflowX !== 'visible' && each.scrollWidth > each.clientWidth + 1;
          return right > width + 1 || isCut
            ? [`${each.tagName} ${each.className} ${each.textContent.slice(0, 40)}`]
            : [];
        });
      }, printedWidth);
      assert.deepEqual(wide, [], 'elements beyond the right margin, or cut');
      const parts = {};
      for (const [part, selector] of Object.entries(together)) parts[part] = await mark(page, selector);
      const headings = await mark(page, 'h2, h3, summary');
      const pdf = await page.pdf({ preferCSSPageSize: true, printBackground: true });
      mkdirSync(join(root, 'test-results'), { recursive: true });
      writeFileSync(join(root, 'test-results', `report-${name.replaceAll(' ', '-')}.pdf`), pdf);
      const pages = pagesOf(pdf);
      assert.ok(pages.length > 1 && pages.length <= most, `${pages.length} pages`);
      const places = new Map();
      pages.forEach(({ width, height, marks }, i) => {
        assert.ok(Math.abs(width - 595.3) < 1 && Math.abs(height - 841.9) < 1, `page ${i + 1}: ${width} × ${height}`);
        for (const { number, end, box } of marks) {
          assert.ok(box[0] >= margin && box[2] <= width - margin, `a mark at ${box.join(', ')} on page ${i + 1}`);
          places.set(`${number} ${end}`, { page: i + 1, y: box[1] });
        }
      });
      let checked = 0;
      for (const [part, { from, to }] of Object.entries(parts))
        for (let i = from; i < to; i++) {
          const [first, last] = ['first', 'last'].map(end => places.get(`${i} ${end}`));
          assert.ok(first && last, `${part} ${i - from + 1} of ${to - from} is not on any page`);
          assert.equal(first.page, last.page, `${part} ${i - from + 1} is divided between two pages`);
          checked++;
        }
      assert.ok(parts.chart.to > parts.chart.from && checked > 10, `only ${checked} parts`);
      // A heading is followed by content on its page: something is marked below it there.
      for (let i = headings.from; i < headings.to; i++) {
        const { page: at, y } = places.get(`${i} last`);
        const below = pages[at - 1].marks.filter(({ number, box }) => number < headings.from && box[1] < y);
        const isText = pages.length > at && below.length === 0;
        assert.ok(!isText || y > 100, `a heading is the last line of page ${at}`);
      }
    } finally {
      await page.close();
    }
  });
