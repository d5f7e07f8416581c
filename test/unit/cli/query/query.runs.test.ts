// `ragen query` over stored runs: the tables contain what the run folders contain; table, CSV and JSON; runs of others
// with damaged lines, links and wrong values.
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { QueryResult } from '../../../../extension/protocol/query-result';
import type { Manifest } from '../../../../extension/run-data/run-manifest';
import { examples } from '../../../../webview/query/examples';
import { restoreRun } from '../../../e2e/fixtures/stored-run.mjs';
import { scoreAndCall } from '../../../support/scored-calls';
import { document, ragen, readRun } from '../../../support/terminal';

let workspace: string;
let lake: string;
let diagnosed: string;
beforeAll(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-query-'));
  lake = restoreRun(workspace, 'lake-run');
  diagnosed = restoreRun(workspace, 'diagnosed-run');
  for (const run of [lake, diagnosed]) mkdirSync(join(run, 'checkpoints'), { recursive: true });
});
afterAll(() => rmSync(workspace, { recursive: true }));

async function asked(sql: string, ...flags: string[]): Promise<QueryResult> {
  const { code, answer, stderr } = await document<QueryResult>(workspace, ['query', sql, ...flags]);
  expect(code, stderr).toBe(0);
  return answer;
}

test('the tables contain what the run folders contain', async () => {
  const { metrics, episodes, events } = readRun(lake);
  const id = basename(lake);
  const manifest = JSON.parse(readFileSync(join(lake, 'manifest.json'), 'utf8')) as Manifest;
  const runs = await asked(`SELECT run, name, state, config ->> '$.seed.train' FROM runs WHERE run = '${id}'`);
  expect(runs.rows).toEqual([
    [id, manifest.name, 'finished', JSON.stringify((manifest.config.seed as { train: unknown }).train)],
  ]);

  const key = 'val-env/QuickFrozenLake/success';
  const validations = metrics.filter(line => key in line).map(line => [line.step, line[key]]);
  const stored = await asked(`SELECT step, value FROM metrics WHERE run = '${id}' AND key = '${key}' ORDER BY step`);
  expect(stored.rows).toEqual(validations);
  const numbers = metrics.flatMap(line => Object.values(line)).filter(value => typeof value === 'number');
  const all = await asked(`SELECT count(*), count(DISTINCT step) FROM metrics WHERE run = '${id}'`);
  expect(all.rows).toEqual([[numbers.length - metrics.length, metrics.length]]); // without `step` itself

  const counted = await asked(
    `SELECT e.mode, count(DISTINCT e.episode), count(*), sum(DISTINCT e.turns * 0) FROM episodes e JOIN turns USING (run, episode)
     WHERE e.run = '${id}' GROUP BY ALL ORDER BY ALL`,
  );
  expect(counted.rows).toEqual(
    (['train', 'val'] as const).map(mode => {
      const these = episodes.filter(episode => episode.mode === mode);
      return [mode, these.length, these.flatMap(({ turns }) => turns).length, 0];
    }),
  );
  const [one] = episodes;
  const row = await asked(
    `SELECT score, success, episodes.tokens, seed, actions FROM episodes JOIN turns USING (run, episode) WHERE run = '${id}' AND episode = '${one.id}' AND turn = 1`,
  );
  expect(row.rows).toEqual([[one.score, one.success, expect.any(Number), one.seed, one.turns[0].executed]]);
  const kinds = await asked(`SELECT count(*), max(step) FROM events WHERE run = '${id}'`);
  expect(kinds.rows).toEqual([[events.length, Math.max(...events.map(({ step }) => step))]]);
});

test('tool calls and judgements have a row each', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-query-'));
  const { id, step, turns, judgements } = scoreAndCall(restoreRun(folder, 'lake-run'));
  const rowsOf = async (sql: string) => (await document<QueryResult>(folder, ['query', sql])).answer.rows;
  expect(await rowsOf('SELECT * EXCLUDE run FROM calls ORDER BY call')).toEqual(
    turns[0].calls!.map(({ name, arguments: args, result, error, ms }, i) => [
      ...[id, step, 'train', 1, i + 1, name, JSON.stringify(args), result, error, ms],
    ]),
  );
  expect(await rowsOf('SELECT * EXCLUDE run FROM judgements ORDER BY model')).toEqual(
    judgements!.clarity.map(({ model, score, text, cached, tokens, cost }) => [
      ...[id, step, 'train', 'clarity', model, score, text, cached, tokens, cost],
    ]),
  );
  rmSync(folder, { recursive: true });
});

test('--run limits the runs, and --rows the rows', async () => {
  expect((await asked('SELECT DISTINCT run FROM metrics', '--run', basename(diagnosed))).rows).toEqual([
    [basename(diagnosed)],
  ]);
  const cut = await asked('SELECT * FROM metrics', '--rows', '3');
  expect([cut.rows.length, cut.truncated]).toEqual([3, true]);
  const { code, stderr } = await ragen(workspace, ['query', 'SELECT 1', '--run', 'nothing']);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/there is no run nothing/)]);
});

test('prints a table and CSV', async () => {
  const sql = `SELECT 'a,"b"' AS text, 1.5 AS number, NULL AS nothing, 'x\ny' AS lines`;
  const table = await ragen(workspace, ['query', sql]);
  expect(table.stdout).toBe('text   number  nothing  lines\na,"b"     1.5           x⏎y\n');
  const csv = await ragen(workspace, ['query', sql, '--csv']);
  expect(csv.stdout).toBe('text,number,nothing,lines\n"a,""b""",1.5,,"x\ny"\n');
});

test('a terminal’s control characters in texts of a run are not printed', async () => {
  const { stdout } = await ragen(workspace, ['query', `SELECT chr(27) || '[2J' AS text`]);
  expect(stdout).not.toContain('\u001b');
});

test('a folder without runs has empty tables', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'ragen-query-'));
  const { answer } = await document<QueryResult>(empty, [
    'query',
    'SELECT count(*) FROM runs, metrics, episodes, turns, calls, judgements, events',
  ]);
  expect(answer.rows).toEqual([[0]]);
  rmSync(empty, { recursive: true });
});

test('a run with damaged lines, links and odd values does not prevent the query', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-query-'));
  const bad = join(folder, '.ragen/runs/20260101-000000-bad-0001');
  cpSync(diagnosed, bad, { recursive: true });
  appendFileSync(join(bad, 'metrics.jsonl'), '{"step":"three"}\n{"step":9,"ti');
  writeFileSync(
    join(folder, 'outside.jsonl'),
    `${JSON.stringify({ time: 'x', step: 1, kind: 'warning', message: 'secret' })}\n`,
  );
  rmSync(join(bad, 'events.jsonl'));
  symlinkSync(join(folder, 'outside.jsonl'), join(bad, 'events.jsonl'));
  mkdirSync(join(folder, '.ragen/runs/20260101-000001-none-0002'));
  writeFileSync(join(folder, '.ragen/runs/20260101-000001-none-0002/manifest.json'), '{');
  const sql = `SELECT count(DISTINCT step) AS steps, (SELECT count(*) FROM events) AS events FROM metrics`;
  const { answer, code } = await document<QueryResult>(folder, ['query', sql]);
  expect(code).toBe(0);
  expect(answer.rows).toEqual([[readRun(diagnosed).metrics.length, 0]]);
  expect(answer.notes).toHaveLength(3);
  expect(answer.notes.join('\n')).toMatch(/manifest\.json[\s\S]*metrics\.jsonl is damaged[\s\S]*events\.jsonl/);
  rmSync(folder, { recursive: true });
});

test('the examples of the Query page are valid', async () => {
  for (const { title, sql } of examples) {
    const { columns } = await asked(sql, '--run', basename(diagnosed));
    expect(columns.length, title).toBeGreaterThan(1);
  }
});
