// Python reads a stored run: the lines of docs/NOTEBOOKS.md as they are printed there, and the exported notebook from its
// first to its last cell, executed by nbclient.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { restoreRun } from '../e2e/fixtures/stored-run.mjs';
import { document, readRun } from '../support/terminal';

const environment = resolve(import.meta.dirname, '../../.notebook');
const installed = existsSync(join(environment, 'installed'));
if (!installed && process.env.RAGEN_REQUIRE_NOTEBOOK === '1')
  throw new Error('RAGEN_REQUIRE_NOTEBOOK is set, but there is no Python: run node test/notebook/install.mjs');

let workspace: string;
let run: string;
beforeAll(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-notebook-'));
  run = restoreRun(workspace, 'lake-run');
  mkdirSync(join(run, 'checkpoints'), { recursive: true });
});
afterAll(() => rmSync(workspace, { recursive: true }));

/** Executes Python in the workspace and returns the JSON that it prints. */
function python(code: string): unknown {
  const { stdout, stderr, status } = spawnSync(join(environment, 'bin', 'python'), ['-'], {
    input: code,
    cwd: workspace,
    encoding: 'utf8',
    env: { ...process.env, JUPYTER_RUNTIME_DIR: join(workspace, 'runtime') },
    maxBuffer: 2 ** 26,
  });
  expect(status, stderr).toBe(0);
  return JSON.parse(stdout);
}

const key = 'val-env/QuickFrozenLake/success';
const validations = (): unknown[] =>
  readRun(run)
    .metrics.filter(line => key in line)
    .map(line => [line.step, line[key]]);

describe.skipIf(!installed)('with Python', () => {
  test('the documented lines read metrics, episodes and turns', () => {
    const page = readFileSync(resolve(import.meta.dirname, '../../docs/NOTEBOOKS.md'), 'utf8');
    const blocks = [...page.matchAll(/```python\n([\s\S]*?)```/g)].map(([, code]) => code);
    expect(blocks[0].trim().split('\n')).toHaveLength(3);
    const code = blocks.join('\n').replaceAll('20261121-201000-quickstart-b7f9', basename(run));
    const shown = `import json
print(json.dumps([json.loads(metrics["${key}"].dropna().reset_index().to_json(orient="values", double_precision=15)),
  len(metrics), len(episodes), len(turns)]))`;
    const { metrics, episodes } = readRun(run);
    const trained = episodes.filter(({ mode }) => mode === 'train');
    const count = trained.flatMap(({ turns }) => turns).length;
    const hidden = 'import matplotlib; matplotlib.use("agg")';
    expect(python(`${hidden}\n${code}\n${shown}`)).toEqual([validations(), metrics.length, trained.length, count]);
  });

  test('the exported notebook runs to its end and shows the run, also with an incomplete last line', async () => {
    appendFileSync(join(run, 'events.jsonl'), '{"step":99,"ki');
    const { answer, code, stderr } = await document<{ file: string }>(workspace, ['notebook', basename(run)]);
    expect(code, stderr).toBe(0);
    const outputs = python(`import json, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(${JSON.stringify(answer.file)}, as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=200).execute()
cells = {cell["id"]: cell for cell in notebook.cells}
text = lambda name: "".join(output["data"].get("text/plain", "") for output in cells[name]["outputs"] if "data" in output)
images = [output for output in cells["plot"]["outputs"] if "image/png" in output.get("data", {})]
print(json.dumps({"counts": text("episodes"), "events": text("events"), "best": text("best"), "images": len(images), "success": text("metrics")}))
`) as Record<'counts' | 'events' | 'best' | 'success' | 'images', string>;
    const { episodes } = readRun(run);
    expect(outputs.counts).toBe(`(${episodes.length}, ${episodes.flatMap(({ turns }) => turns).length})`);
    expect(outputs.images).toBe(1);
    expect(outputs.events).toMatch(/memory_plan/);
    expect(outputs.success).toContain(key);
    expect(outputs.best).toMatch(/thought/);
  });
});

test('an existing file is replaced only with --force', async () => {
  const args = ['notebook', basename(run), '--out', 'kept.ipynb'];
  expect((await document(workspace, args)).code).toBe(0);
  const { code, stderr } = await document(workspace, args);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/kept\.ipynb already exists: .*--force/)]);
  expect((await document(workspace, [...args, '--force'])).code).toBe(0);
});
