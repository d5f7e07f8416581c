// Reading a run's log incrementally: growth, the limit of the first read, rotation and a return to a checkpoint.
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RunLog } from '../../../../extension/vscode/run-files/run-log';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-log-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const event = (step: number, message: string): string =>
  `${JSON.stringify({ time: new Date(step * 1000).toISOString(), step, kind: 'state', message })}\n`;
const textsOf = async (log: RunLog): Promise<string[]> => (await log.read()).entries.map(({ text }) => text);

test('the log of a run without files is empty, and grows with each file', async () => {
  const log = new RunLog(folder);
  expect(await log.read()).toEqual({ entries: [], restarted: false });
  writeFileSync(join(folder, 'events.jsonl'), event(1, 'running'));
  expect(await textsOf(log)).toEqual(['running']);
  writeFileSync(join(folder, 'trainer.log'), 'loading\nloa');
  appendFileSync(join(folder, 'events.jsonl'), event(2, 'paused'));
  expect(await textsOf(log)).toEqual(['loading', 'paused']);
  appendFileSync(join(folder, 'trainer.log'), 'ded\n');
  expect(await textsOf(log)).toEqual(['loaded']);
  expect(await textsOf(log)).toEqual([]);
});

test('the first read is limited to the newest complete lines of each file', async () => {
  writeFileSync(join(folder, 'trainer.log'), Array.from({ length: 5000 }, (_, i) => `line ${i}\n`).join(''));
  writeFileSync(join(folder, 'events.jsonl'), event(1, 'running'));
  const log = new RunLog(folder, 100);
  const texts = await textsOf(log);
  const lines = texts.filter(text => text.startsWith('line'));
  expect(lines.at(-1)).toBe('line 4999');
  expect(lines.length).toBeLessThan(12);
  expect(texts).toContain('running');
  expect(log.cut).toEqual(['trainer.log']);
  appendFileSync(join(folder, 'trainer.log'), 'more\n');
  expect(await textsOf(log)).toEqual(['more']);
});

test('a return to a checkpoint restarts the log, and a rotation of trainer.log does not', async () => {
  writeFileSync(join(folder, 'trainer.log'), 'one\ntwo\n');
  writeFileSync(join(folder, 'events.jsonl'), event(1, 'a') + event(2, 'b'));
  const log = new RunLog(folder);
  await log.read();
  truncateSync(join(folder, 'trainer.log'));
  appendFileSync(join(folder, 'trainer.log'), 'new\n');
  const rotated = await log.read();
  expect([rotated.restarted, rotated.entries.map(({ text }) => text)]).toEqual([false, ['new']]);
  truncateSync(join(folder, 'events.jsonl'), event(1, 'a').length);
  expect((await log.read()).restarted).toBe(true);
});

test('the log restarts when the mark of an earlier event moves to another step', async () => {
  const line = (kind: string, data: object): string =>
    `${JSON.stringify({ time: new Date(1000).toISOString(), step: 5, kind, message: kind, data })}\n`;
  const file = join(folder, 'events.jsonl');
  writeFileSync(file, line('environment_reload', { tag: 'lake', from: 'a', to: 'b', files: [], step: 6, ms: 3 }));
  const log = new RunLog(folder);
  const first = await log.read();
  expect([first.restarted, first.entries[0].markedAt]).toEqual([false, 6]);
  appendFileSync(file, line('environment_ran', { tag: 'lake', version: 'b', step: 7 }));
  expect((await log.read()).restarted).toBe(true);
  expect((await new RunLog(folder).read()).entries.map(({ markedAt }) => markedAt)).toEqual([7, 7]);
});
