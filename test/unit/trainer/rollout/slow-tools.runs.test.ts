// A rollout in which one member's tool waits until all other episodes have ended: with `async_rollout`, the model goes on
// with the others meanwhile, as with slow environments (slow-environments.runs.test.ts).
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { GeneratedRow, GenerationRow } from '../../../../extension/engine/generation-calls';
import { EnvironmentProcessPool } from '../../../../extension/environments/client/process-pool';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { buildEntry, workspace } from '../../../support/bundles';
import { corridorOptions } from './scripted-rollout';

const [members, calls] = [8, 3];
const slow = 'm03';

/** A task with a tool `look`; the first call of member 3 waits for a file. */
const source = (release: string) => `import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';
import { defineTool } from 'ragen-workbench/api/tools/tool';

export default defineEnvironment({
  name: 'looking',
  config: z.object({}),
  instruction: 'Look, then answer.',
  create() {
    let member = 0;
    let looked = 0;
    const look = defineTool({
      description: 'Looks.',
      parameters: z.strictObject({}),
      async run() {
        while (member === 3 && looked === 0 && !existsSync(${JSON.stringify(release)})) await sleep(5);
        return String(++looked);
      },
    });
    return {
      tools: { look },
      reset(options) {
        member = options.member ?? 0;
        looked = 0;
        return { observation: 'What do you see?' };
      },
      step: answer => ({
        observation: 'Done.', reward: Number(answer), terminated: true, truncated: false, info: { success: true },
      }),
      render: () => '',
    };
  },
});
`;

let entry: string;
let files: ReturnType<typeof workspace>;
beforeAll(async () => {
  entry = await buildEntry();
  files = workspace();
});
afterAll(() => [dirname(entry), files.folder].forEach(folder => rmSync(folder, { recursive: true, force: true })));

it('the model plays the other episodes while a tool is slow', async () => {
  const release = join(files.folder, 'release');
  const pool = await EnvironmentProcessPool.start(
    { entry, variables: process.env, stepTimeoutMs: 30_000, onNotice: () => undefined },
    { Looking: 1 },
  );
  try {
    const spec = {
      tag: 'Looking',
      env_type: 'looking',
      source: files.write('looking.ts', source(release)),
      config: {},
    };
    const { environments, error } = await pool.load([spec]);
    expect(error).toBeUndefined();
    const tokenizer = readTokenizer('test/golden/chat/qwen2.5');
    const turns = new Map<string, number>();
    /** Episode and turn of each generated turn, in order. */
    const played: string[] = [];
    const generate = async (rows: readonly GenerationRow[]): Promise<GeneratedRow[]> =>
      rows.map(({ row }) => {
        const turn = (turns.get(row) ?? 0) + 1;
        turns.set(row, turn);
        played.push(`${row.slice(-3)} ${turn}`);
        // The tool returns once all other episodes have given their answers.
        if (played.filter(each => each.endsWith(` ${calls + 1}`)).length === members - 1) writeFileSync(release, '');
        const text =
          turn <= calls ? '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>' : '<answer>1</answer>';
        const ids = [...tokenizer.encode(text), tokenizer.stopTokenIds[0]];
        return { row, ids, logprobs: ids.map(() => -0.5), finish: 'stop' };
      });
    const options = corridorOptions({ async_rollout: true });
    const agent = new AgentProxy({ generate, release: () => undefined }, pool, tokenizer, {
      ...options,
      agent_proxy: { ...options.agent_proxy, enable_think: false, max_turn: calls + 1 },
      rollout: { ...options.rollout, max_model_len: 20_000, response_length: 200 },
      es_manager: {
        ...options.es_manager,
        train: { env_groups: 1, group_size: members, env_configs: { tags: ['Looking'], n_groups: [1] } },
      },
      custom_envs: { Looking: { max_actions_per_traj: calls + 1 } },
    });
    const { episodes } = await agent.rollout({ mode: 'train', step: 1, environments, seed: 3 });
    expect(episodes.map(({ reward }) => reward)).toEqual(Array(members).fill(1));
    const late = played.slice((members - 1) * (calls + 1) + 1);
    expect(late).toEqual([2, 3, 4].map(turn => `${slow} ${turn}`));
  } finally {
    await pool.stop();
  }
});
