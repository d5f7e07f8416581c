// Data sets of runs of other trainers: OpenAI messages, SFT, preference pairs, ATIF and Parquet keep reasoning, tool calls
// and their results, as verifiers and TRL store them.
import { mkdirSync, readFileSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadDuckDB } from '../../../../extension/cli/query/sql-engine';
import { exportEpisodes, type EpisodeFormat } from '../../../../extension/cli/trajectories/export-episodes';
import type { AtifTrajectory } from '../../../../extension/run-data/trajectories/atif';
import type { MessagesLine, PreferencePair } from '../../../../extension/run-data/trajectories/chat-lines';
import { attachOnce, type Attached } from '../../../support/attached';
import { temporaryFolder } from '../../../support/temporary-folder';

const workspace = temporaryFolder();

/** The answers of two rollouts of a prompt group; the first is rewarded. */
const prompt = [
  { role: 'system', content: 'Use the tool.' },
  { role: 'user', content: 'What is 6 × 7?' },
];
const called = [
  {
    role: 'assistant',
    content: '',
    reasoning_content: 'I multiply.',
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'multiply', arguments: '{"a":6,"b":7}' } }],
  },
  { role: 'tool', tool_call_id: 'a', content: '42' },
  { role: 'assistant', content: '<think>The tool says 42.</think><answer>42</answer>' },
];
const guessed = [{ role: 'assistant', content: '<think>A guess.</think><answer>41</answer>' }];

async function query(sql: string): Promise<unknown[][]> {
  const { DuckDBInstance } = await loadDuckDB('export');
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Makes the files of a trainer. */
const writers: Record<string, (folder: string) => Promise<string>> = {
  verifiers(folder) {
    const file = join(folder, 'results.jsonl');
    const row = (completion: unknown, reward: number) =>
      `${JSON.stringify({ example_id: 3, task: 'sums', prompt, completion, reward, metrics: {} })}\n`;
    writeFileSync(file, row(called, 1) + row(guessed, 0));
    return Promise.resolve(file);
  },
  async TRL(folder) {
    mkdirSync(join(folder, 'completions'));
    const file = join(folder, 'completions/completions_00001.parquet');
    const rows = [
      { step: 1, prompt, completion: called, reward: 1, advantage: 1 },
      { step: 1, prompt, completion: guessed, reward: 0, advantage: -1 },
    ];
    const lines = join(folder, 'rows.json');
    writeFileSync(lines, rows.map(row => JSON.stringify(row)).join('\n'));
    const kind = `STRUCT(role VARCHAR, content VARCHAR, reasoning_content VARCHAR, tool_call_id VARCHAR, tool_calls STRUCT(id VARCHAR, type VARCHAR, "function" STRUCT(name VARCHAR, arguments VARCHAR))[])[]`;
    const columns = `{step: 'INTEGER', prompt: '${kind}', completion: '${kind}', reward: 'DOUBLE', advantage: 'DOUBLE'}`;
    await query(
      `COPY (SELECT * FROM read_json('${lines}', format = 'newline_delimited', columns = ${columns})) TO '${file}' (FORMAT parquet)`,
    );
    return file;
  },
};

async function attached(trainer: string): Promise<Attached> {
  const folder = join(workspace(), 'files');
  mkdirSync(folder);
  const file = await writers[trainer](folder);
  const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written
  utimesSync(file, old, old);
  return attachOnce(workspace(), folder);
}

async function exported(run: Attached, format: EpisodeFormat, filter = ''): Promise<string> {
  const out = join(workspace(), `out-${format}`);
  await exportEpisodes({ workspace: workspace(), run: run.folder.id, format, out, filter, force: false });
  return out;
}

const linesOf = <T>(file: string): T[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as T);

const firstAnswer = '<think>I multiply.</think><tool_call>multiply {"a":6,"b":7}</tool_call>';

describe.each(Object.keys(writers))('a run of %s', trainer => {
  it('is recognised, with both turns of a call', async () => {
    const { folder, episodes } = await attached(trainer);
    expect(folder.manifest.trainer!.name).toBe(trainer);
    const [[first]] = Object.values(episodes);
    expect(first.turns.map(({ thought, answer, state }) => [thought, answer, state])).toEqual([
      ['I multiply.', '<tool_call>multiply {"a":6,"b":7}</tool_call>', 'What is 6 × 7?'],
      ['The tool says 42.', '42', '42'],
    ]);
  });

  it('as OpenAI messages, and for SFT the chosen episodes', async () => {
    const run = await attached(trainer);
    const [{ messages, metadata }, ...others] = linesOf<MessagesLine>(await exported(run, 'messages'));
    expect(others).toHaveLength(1);
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ...prompt.map(({ role, content }) => [role, content]),
      ['assistant', firstAnswer],
      ['tool', '42'],
      ['assistant', called[2].content],
    ]);
    expect(metadata).toMatchObject({ run: run.folder.id, reward: 1, success: null });
    // As the Episodes page names the listed episodes.
    const mode = trainer === 'TRL' ? 'train' : 'val';
    const chosen = linesOf<MessagesLine>(await exported(run, 'sft', `mode:${mode} return>=1 turns:2`));
    expect(chosen.map(line => Object.keys(line))).toEqual([['messages']]);
    expect(chosen[0].messages).toEqual(messages);
  });

  it('as preference pairs of its prompt groups', async () => {
    const [pair, ...others] = linesOf<PreferencePair>(await exported(await attached(trainer), 'dpo'));
    expect(others).toEqual([]);
    expect(pair.prompt.map(({ content }) => content)).toEqual(prompt.map(({ content }) => content));
    expect(pair.chosen.map(({ content }) => content)).toEqual([firstAnswer, '42', called[2].content]);
    expect(pair.rejected.map(({ content }) => content)).toEqual([guessed[0].content]);
  });

  it('as ATIF trajectories of its trainer', async () => {
    const folder = await exported(await attached(trainer), 'atif');
    const [first] = readdirSync(folder).sort();
    const { agent, steps } = JSON.parse(readFileSync(join(folder, first), 'utf8')) as AtifTrajectory;
    expect(agent).toEqual({ name: trainer, version: 'unknown' });
    expect(steps.map(({ source, message, reasoning_content }) => [source, message, reasoning_content])).toEqual([
      ['system', 'Use the tool.', undefined],
      ['user', 'What is 6 × 7?', undefined],
      ['agent', firstAnswer, 'I multiply.'],
      ['agent', called[2].content, 'The tool says 42.'],
    ]);
    expect(steps[2].observation).toEqual({ results: [{ content: '42' }] });
  });

  it('as a Parquet table', async () => {
    const file = await exported(await attached(trainer), 'parquet');
    const rows = await query(
      `SELECT reward, success, messages[3].content, turns[1].thought, turns[1].raw, turns[2].state, len(token_ids) FROM read_parquet('${file}') ORDER BY member`,
    );
    expect(rows[0]).toEqual([1, null, firstAnswer, 'I multiply.', firstAnswer, '42', expect.anything()]);
    expect(rows[1].slice(0, 4)).toEqual([0, null, guessed[0].content, 'A guess.']);
  });
});
