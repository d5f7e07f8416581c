// docs/environments/writing-your-own.md: every environment in it is type-checked, built and played in the environment
// process as shipped, in a folder without node_modules. They keep the contract, and its configuration loads.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ContractReport } from '../../../extension/protocol/environment-tools';
import { TypeCheckService } from '../../../extension/environments/runtime/build/type-check';
import { loadConfig } from '../../../extension/trainer/config/load-config';
import type { EnvironmentProcess } from '../../../extension/environments/client/environment-process';
import { environmentSpecs } from '../../../extension/environments/client/environment-specs';
import { presetFolder } from '../trainer/config/presets';
import { root, startProcess } from '../../support/bundles';

const text = readFileSync(join(root, 'docs/environments/writing-your-own.md'), 'utf8');
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'gm'))].map(([, code]) => code);
const [guess, judge, hard] = blocks('ts');

let running: EnvironmentProcess;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-own-'));
  ({ running } = await startProcess(join(root, 'dist/environment-host.cjs'), { stepTimeoutMs: 20_000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(folder, { recursive: true });
});

function written(name: string, code: string): string {
  const file = join(folder, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, code);
  return file;
}

/** Loads an environment and resets an episode of it. */
async function begin(tag: string, source: string, config: Record<string, unknown> = {}, seed = 7) {
  const { error, environments } = await running.load([{ tag, env_type: source, source, config }]);
  expect(error).toBeUndefined();
  const [state] = await running.reset([{ episode: tag, tag, seed, member: 0, mode: 'train' }]);
  expect(state.error).toBeUndefined();
  return { environment: environments[0], state };
}
const act = async (episode: string, actions: (number | string)[]) => {
  const [step] = await running.step([{ episode, actions }]);
  expect(step.error).toBeUndefined();
  return step;
};

test('the code blocks have no type errors', () => {
  expect(blocks('ts').length).toBe(3);
  const service = new TypeCheckService(ts, root);
  const files = [guess, judge, hard].map((code, i) => written(`checked-${i}.ts`, code));
  expect(files.flatMap(file => service.check(file).problems)).toEqual([]);
  const wrong = written('wrong.ts', hard.replace('maxSteps: 30', "maxSteps: 'thirty'"));
  expect(service.check(wrong).problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("Type 'string' is not assignable"),
  ]);
});

test.each([
  ['the whole one', guess, []],
  ['the wrapped one', hard, ['--set', 'num_boxes=1']],
])(
  '%s keeps the contract of environments',
  (name, code, values) => {
    const source = written(`${name.replaceAll(' ', '-')}.ts`, code);
    const cli = join(root, 'dist/cli.cjs');
    const { stdout } = spawnSync(
      process.execPath,
      [cli, 'env', 'check', source, '--json', '--workspace', folder, ...values],
      { encoding: 'utf8' },
    );
    const { checks } = JSON.parse(stdout) as ContractReport;
    expect(checks.filter(({ state }) => state === 'failed')).toEqual([]);
  },
  60_000,
);

describe('the complete example', () => {
  test('can be played', async () => {
    const { state, environment } = await begin('Guess', written('envs/guess.ts', guess), { highest: 20 });
    expect(state.observation).toBe('Which number is it?');
    expect(environment.instruction).toContain('from 1 to 20');
    const [{ actions }] = await running.solve(['Guess']);
    const secret = Number(actions![0]);
    const missed = await act('Guess', ['21', String(secret === 20 ? 1 : 20)]);
    expect(missed.outcomes.map(({ reward, info }) => [reward, info.action_is_valid])).toEqual([
      [0, false],
      [0, true],
    ]);
    expect(missed.observation).toBe(secret === 20 ? 'Higher.' : 'Lower.');
    const right = await act('Guess', actions!);
    expect(right.outcomes).toMatchObject([{ reward: 1, terminated: true, info: { success: true } }]);
  });

  test('is the one that the configuration beside it names', () => {
    written('envs/guess.ts', guess);
    written('configs/guess.yaml', blocks('yaml')[0]);
    const presetFolders = [join(folder, 'configs'), presetFolder];
    const { config } = loadConfig({ configName: 'guess', overrides: [], presetFolders, workspace: folder });
    const { tags } = config.es_manager.train.env_configs;
    const [spec] = environmentSpecs(tags, config.custom_envs, join(root, 'envs'), folder);
    expect(spec).toMatchObject({ tag: 'Guess', source: join(folder, 'envs/guess.ts'), config: { highest: 20 } });
  });
});

test('the example that queries a server plays an episode', async () => {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => response.end(request.method === 'POST' ? String(body.includes('||') ? 0.75 : 0) : 'ready'));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const source = written('judge.ts', judge);
  const { environment } = await begin('Judge', source, { server: `http://127.0.0.1:${port}` });
  expect(environment.whole_answer).toBe(true);
  expect((await act('Judge', ['sea || sand'])).outcomes).toMatchObject([{ reward: 0.75, info: { success: true } }]);
  server.close();

  const config = { server: `http://127.0.0.1:${port}/gone` };
  const { error } = await running.load([{ tag: 'Gone', env_type: source, source, config }]);
  expect(error?.message).toContain('cannot reach a judge at');
  expect(error?.message).toContain('start the judge, or set env_config.server to its address');
});

describe('the wrapped example', () => {
  const config = { num_boxes: 1 };

  test('is solved through its wrappers, and masks, shapes, remembers and limits', async () => {
    const { environment, state } = await begin('Hard', written('hard.ts', hard), config, 10000);
    expect(environment).toMatchObject({ name: 'sokoban_hard', has_solver: true, config: { num_boxes: 1 } });
    expect(state.observation).toBe(
      'State 0:\n######\n#O####\n#__###\n#X_###\n#_P_##\n######\nOpen actions: Up, Left, Right.',
    );
    const blocked = await act('Hard', [2]);
    expect(blocked.outcomes).toMatchObject([
      { reward: -0.2 - 0.1, info: { action_is_valid: false, raw_reward: -0.2 } },
    ]);
    const [{ actions }] = await running.solve(['Hard']);
    const solved = await act('Hard', actions!);
    expect(solved.outcomes.at(-1)).toMatchObject({ reward: 10.9, terminated: true, info: { success: true } });
    expect(solved.observation.match(/^State \d+:/gm)).toEqual(['State 2:', 'State 3:', 'State 4:']);

    await begin('Hard', join(folder, 'hard.ts'), config, 10000);
    const limited = await act('Hard', Array<number>(40).fill(2));
    expect([limited.outcomes.length, limited.outcomes.at(-1)]).toMatchObject([
      30,
      { terminated: false, truncated: true },
    ]);
  });

  test('has a version that depends on its code, not its location, and finds the data of the inner environment', async () => {
    const near = await begin('Near', written('hard.ts', hard), config);
    const far = await begin('Far', written('some/where/else/hard.ts', hard), config);
    expect(far.environment.version).toBe(near.environment.version);
    const short = `import countdown from 'ragen-workbench/envs/countdown';
      import { withTimeLimit } from 'ragen-workbench/api/wrappers/time-limit';
      export default withTimeLimit(countdown, { maxSteps: 1 });`;
    const { state } = await begin('Countdown', written('countdown.ts', short), {}, 10000);
    expect(state.observation).toBe('Target: 100, nums: [4, 89, 7]');
  });
});
