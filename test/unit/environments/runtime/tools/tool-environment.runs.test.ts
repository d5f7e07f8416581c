// Tools of an environment in its real process: order and overlap of calls, limits, failures that the model sees, failures
// that end the episode, replays, and edits of tools while episodes are played.
import { rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callAction, type WrittenCall } from '../../../../../envs/api/tools/call-action';
import type { EnvironmentProcess } from '../../../../../extension/environments/client/environment-process';
import { defaultToolLimits, type ToolSettings } from '../../../../../extension/protocol/tool-link';
import type { ToolCallRecord } from '../../../../../extension/run-data/tool-call';
import { buildEntry, startProcess, workspace } from '../../../../support/bundles';

/** An environment whose tools write into a log of the episode; `tools` is the text of more tools. */
const notebook = (tools = '') => `import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { defineTool, ToolError } from 'ragen-workbench/api/tools/tool';
export default defineEnvironment({
  name: 'notebook',
  config: z.object({}),
  instruction: 'Write.',
  create() {
    let log: string[] = [];
    let ended = false;
    const none = z.strictObject({});
    const pause = (ms: number) => new Promise(done => setTimeout(done, ms));
    return {
      tools: {
        write: defineTool({
          description: 'Writes a line.',
          parameters: z.strictObject({ line: z.string(), times: z.int().min(1).default(1) }),
          run({ line, times }) { log.push(line.repeat(times)); },
        }),
        read: defineTool({ description: 'Reads all lines.', parameters: none, parallel: true, run: () => ({ log }) }),
        meet: defineTool({
          description: 'Waits until two of these calls run.', parameters: none, parallel: true,
          async run() { log.push('in'); while (log.filter(x => x === 'in').length % 2 === 1) await pause(1); return 'met'; },
        }),
        slow: defineTool({
          description: 'Returns when it is aborted.', parameters: none,
          run: (_, { signal }) => new Promise(done => signal.addEventListener('abort', () => { log.push('aborted'); done('late'); })),
        }),
        refuse: defineTool({ description: 'Refuses.', parameters: none, run() { throw new ToolError('not today'); } }),
        fail: defineTool({ description: 'Has a mistake.', parameters: none, run() { return (undefined as unknown as string).length; } }),
        spin: defineTool({ description: 'Never returns.', parameters: none, run() { for (;;); } }),
        long: defineTool({ description: 'Returns much.', parameters: none, run: () => 'x'.repeat(5000) }),
        end: defineTool({ description: 'Ends the episode.', parameters: none, run() { ended = true; return 'bye'; } }),
        ${tools}
      },
      afterCalls: () => (ended ? { reward: 2, terminated: true, info: { success: true } } : {}),
      reset: ({ seed }) => ({ observation: 'seed ' + seed }),
      step: action => ({ observation: 'said ' + action, reward: 1, terminated: false, truncated: false, info: {} }),
    };
  },
});
`;

let entry: string;
let running: EnvironmentProcess;
const files = workspace();
const source = files.write('notebook.ts', notebook());
const settings: ToolSettings = {
  ...defaultToolLimits,
  max_calls_per_turn: 3,
  max_calls: 6,
  timeout_ms: 300,
  max_result_characters: 200,
  servers: {},
};
const spec = { tag: 'N', env_type: 'notebook.ts', source, config: {}, tools: settings };

beforeAll(async () => {
  entry = await buildEntry();
  ({ running } = await startProcess(entry, { stepTimeoutMs: 500 }));
  const { environments, error } = await running.load([spec]);
  expect(error).toBeUndefined();
  expect(environments[0].tools?.map(({ name }) => name).slice(0, 3)).toEqual(['write', 'read', 'meet']);
  expect(environments[0].tools?.[0].parameters).toEqual({
    type: 'object',
    properties: { line: { type: 'string' }, times: { type: 'integer', minimum: 1, default: 1 } },
    required: ['line'],
    additionalProperties: false,
  });
});
afterAll(async () => {
  await running.stop();
  [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true }));
});

let opened = 0;
async function open(): Promise<string> {
  const episode = `e${opened++}`;
  await running.reset([{ episode, tag: 'N', seed: 1, member: 0, mode: 'train' }]);
  return episode;
}
const call = (name: string, args: Record<string, unknown> = {}): WrittenCall => ({ name, arguments: args });
async function play(episode: string, ...calls: WrittenCall[]) {
  const [step] = await running.step([{ episode, actions: [callAction(calls)] }]);
  return {
    ...step,
    results: step.outcomes[0]?.calls?.map(({ result }) => result) ?? [],
    records: step.outcomes[0]?.calls ?? [],
  };
}

test('results come in the order of the calls, and a call sees the effects of earlier calls', async () => {
  const { results, observation, outcomes } = await play(
    await open(),
    call('write', { line: 'a', times: 2 }),
    call('read'),
    call('write', { line: 'b' }),
  );
  expect(results).toEqual(['done', '{"log":["aa"]}', 'done']);
  expect(observation).toBe('write: done\nread: {"log":["aa"]}\nwrite: done');
  expect(outcomes[0]).toMatchObject({
    reward: 0,
    terminated: false,
    info: { action_is_valid: true, action_is_effective: true },
  });
});

test('neighbouring calls of parallel tools run at the same time', async () => {
  expect((await play(await open(), call('meet'), call('meet'))).results).toEqual(['met', 'met']);
});

test('the model sees which call failed and why', async () => {
  const { results, records, outcomes } = await play(
    await open(),
    call('nothing'),
    { problem: 'the tool call has no name.' },
    call('write', { line: 3 }),
  );
  expect(results).toEqual([
    'Error: there is no tool "nothing": use one of write, read, meet, slow, refuse, fail, spin, long, end.',
    'Error: the tool call has no name.',
    expect.stringMatching(/^Error: write was not executed: the argument line is wrong \(.*string.*\)\.$/) as string,
  ]);
  expect(records.map(({ name, error, ms }: ToolCallRecord) => [name, error, ms])).toEqual([
    ['nothing', true, 0],
    ['', true, 0],
    ['write', true, 0],
  ]);
  expect(outcomes[0].info).toEqual({ action_is_valid: false, action_is_effective: false });
  const later = await play(await open(), call('refuse'), call('write', { line: 'a', more: 1 }), call('long'));
  expect(later.results[0]).toBe('Error: not today');
  expect(later.results[1]).toMatch(/^Error: write was not executed: .*more/);
  expect(later.results[2]).toBe(`${'x'.repeat(200)}\n[4800 more characters]`);
});

test('calls beyond a limit are not executed', async () => {
  const episode = await open();
  const line = { line: 'a' };
  const four = await play(episode, call('write', line), call('write', line), call('write', line), call('write', line));
  expect(four.results.slice(2)).toEqual([
    'done',
    'Error: a turn may have at most 3 tool calls: call fewer tools in one turn.',
  ]);
  expect((await play(episode, call('write', line), call('write', line))).results).toEqual(['done', 'done']);
  const last = await play(episode, call('read'), call('read'));
  expect(last.results).toEqual([
    '{"log":["a","a","a","a","a"]}',
    'Error: an episode may have at most 6 tool calls: answer without further calls.',
  ]);
});

test('a call that waits too long is aborted, and the rest of the turn is not executed', async () => {
  const episode = await open();
  const late = 'the time limit of 300 ms for the calls of a turn was reached';
  const { results, records } = await play(episode, call('slow'), call('read'));
  expect(results).toEqual([`Error: slow did not return: ${late}.`, `Error: read was not executed: ${late}.`]);
  expect(records[0].ms).toBeGreaterThanOrEqual(290);
  expect((await play(episode, call('read'))).results).toEqual(['{"log":["aborted"]}']);
});

test('a mistake in a tool ends its episode with its line; other episodes go on', async () => {
  const [broken, other] = [await open(), await open()];
  await play(other, call('write', { line: 'a' }));
  const { error } = await play(broken, call('fail'));
  expect(error).toMatchObject({ kind: 'threw', message: expect.stringContaining('notebook.ts') as string });
  expect((await play(other, call('read'))).results).toEqual(['{"log":["a"]}']);
});

test('a tool that never returns ends its episode; the others are replayed with their calls', async () => {
  const [broken, other] = [await open(), await open()];
  await play(other, call('write', { line: 'kept' }));
  const { error } = await play(broken, call('spin'));
  expect(error?.kind).toBe('timed_out');
  expect((await play(other, call('read'))).results).toEqual(['{"log":["kept"]}']);
});

test('calls may end the episode, and answers are passed to step', async () => {
  const episode = await open();
  const [said] = await running.step([{ episode, actions: ['hello'] }]);
  expect([said.observation, said.outcomes[0].calls]).toEqual(['said hello', undefined]);
  const { outcomes } = await play(episode, call('end'));
  expect(outcomes[0]).toMatchObject({ reward: 2, terminated: true, info: { success: true, action_is_valid: true } });
  expect((await play(episode, call('read'))).error?.message).toMatch(/The episode is over/);
});

test('edited tools are used by later episodes only', async () => {
  const before = await open();
  writeFileSync(source, notebook(`shout: defineTool({ description: 'Shouts.', parameters: none, run: () => 'HO' }),`));
  const [prepared] = await running.prepare([spec], true);
  if (!('environment' in prepared)) throw new Error(JSON.stringify(prepared));
  expect(prepared.environment.tools?.at(-1)).toMatchObject({ name: 'shout', description: 'Shouts.' });
  await running.use([{ spec, environment: prepared.environment }]);
  expect((await play(await open(), call('shout'))).results).toEqual(['HO']);
  expect((await play(before, call('shout'))).results[0]).toMatch(/there is no tool "shout"/);
});

test.each([
  [`bad: 3,`, /has the tool bad with the description missing/],
  [
    `'b a d': defineTool({ description: '', parameters: none, run: () => '' }),`,
    /has a tool named "b a d": use a name of letters/,
  ],
  [
    `bad: defineTool({ description: '', parameters: z.string() as never, run: () => '' }),`,
    /whose parameters are .*not a zod object schema/,
  ],
  [
    `bad: defineTool({ description: '', parameters: z.object({ x: z.date() }), run: () => '' }),`,
    /have no JSON schema/,
  ],
  [`bad: { description: '', parameters: none } as never,`, /has the tool bad without run/],
])('a tool that is not valid is refused with its name: %s', async (tool, message) => {
  writeFileSync(source, notebook(tool));
  const [prepared] = await running.prepare([spec], false);
  expect('problems' in prepared && prepared.problems[0].message).toMatch(message);
});

test('score functions of the environment see the calls of the turn with their results', async () => {
  const scored = notebook()
    .replace("name: 'notebook',", "name: 'notebook',\n  components: { failed: 1, talk: 0.5 },")
    .replace(
      'reset: (',
      'score: ({ calls = [] }) => ({ failed: calls.filter(({ error }) => error).length, talk: calls[0]?.result.length ?? 0 }),\n      reset: (',
    );
  const file = files.write('scored.ts', scored);
  const { environments, error } = await running.load([{ ...spec, tag: 'S', env_type: 'scored.ts', source: file }]);
  expect([error, environments[0].components]).toEqual([undefined, { failed: 1, talk: 0.5 }]);
  await running.reset([{ episode: 's', tag: 'S', seed: 1, member: 0, mode: 'train' }]);
  const turn = {
    ...{ turn: 1, state: 'seed 1', raw: '', thought: null, answer: null, parsed: [] },
    ...{ finish: 'stop' as const },
  };
  const actions = [callAction([call('read'), call('refuse')])];
  const [called] = await running.step([{ episode: 's', actions, score: { turn } }]);
  expect(called.components).toEqual({ failed: 1, talk: '{"log":[]}'.length });
  const [said] = await running.step([{ episode: 's', actions: ['hello'], score: { turn: { ...turn, turn: 2 } } }]);
  expect(said.components).toEqual({ failed: 0, talk: 0 });
});
