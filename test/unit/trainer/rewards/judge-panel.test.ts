// The judges of a run against a local server with both protocols: values, cache, budgets, retries, and failures, none of
// which ends a rollout.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { apiModel, type ApiModel } from '../../../../extension/trainer/config/schema-evaluation';
import { rewards } from '../../../../extension/trainer/config/schema-rewards';
import { judgedComponents, JudgePanel, type RolloutJudges } from '../../../../extension/trainer/rewards/judge-panel';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { startPeer, type ApiPeer, type Mishap } from '../evaluation/api-peer';
import {
  characterTokenizer,
  corridor,
  corridorOptions,
  CorridorPool,
  ScriptedGenerator,
} from '../rollout/scripted-rollout';

let peer: ApiPeer;
let folder: string;
let warnings: string[];
const open: JudgePanel[] = [];
beforeEach(async () => {
  peer = await startPeer();
  peer.answer = () => ({ text: 'Fine. Score: 6' });
  folder = mkdtempSync(join(tmpdir(), 'ragen-judges-'));
  writeFileSync(join(folder, 'clear.md'), '# Clarity\nIs the thought clear?');
  warnings = [];
});
afterEach(async () => {
  for (const panel of open.splice(0)) panel.close();
  await peer.close();
  rmSync(folder, { recursive: true });
});

const entry = (change: Partial<ApiModel> = {}): ApiModel =>
  apiModel.parse({
    provider_name: 'openai',
    model_name: 'm',
    base_url: `${peer.url}/v1`,
    max_retries: 2,
    timeout_s: 5,
    ...change,
  });
const models = (): Record<string, ApiModel> => ({
  gpt: entry({ price_per_million: { input: 1000, output: 1000 } }),
  claude: entry({ provider_name: 'anthropic', base_url: peer.url }),
});
const settings = (judge: object) =>
  rewards.parse({ judges: { clarity: { weight: 2, rubric: 'clear.md', models: ['gpt'], ...judge } } });
function panelOf(
  judge: object = {},
  environment: Record<string, string> = { OPENAI_API_KEY: peer.key, ANTHROPIC_API_KEY: peer.key },
): JudgePanel {
  const custom_envs = { Corridor: { rewards: settings(judge) } } as never;
  const panel = JudgePanel.open({
    config: { custom_envs, model_info: models() },
    tags: ['Corridor', 'Corridor'],
    workspace: folder,
    file: join(folder, 'judgements.jsonl'),
    environment,
    warn: message => warnings.push(message),
    pauseMs: { first: 1, longest: 4 },
  })!;
  open.push(panel);
  return panel;
}
const episode = (raw: string) => {
  const turn = { turn: 1, state: 's', raw, thought: null, answer: null, parsed: [], executed: [], reward: 0, info: {} };
  const turns = [{ ...turn, finish: 'stop' as const }];
  return {
    instruction: 'Walk.',
    episode: { turns, final_state: 'e', terminated: true, truncated: false, success: false },
  };
};
const judge = async (judges: RolloutJudges, raw = 'a') => (await judges.judge('Corridor', episode(raw))).clarity;
const mishap = (status: number): Mishap => ({ status, error: { message: 'told to fail' } });

test('without judges there is no panel, and a tag without judges has no judgements', async () => {
  const custom_envs = { Corridor: {}, Other: { rewards: settings({}) } } as never;
  const options = { workspace: folder, file: join(folder, 'judgements.jsonl'), environment: {}, warn: () => undefined };
  expect(
    JudgePanel.open({ ...options, config: { custom_envs, model_info: models() }, tags: ['Corridor'] }),
  ).toBeUndefined();
  expect(await panelOf().openRollout().judge('Other', episode('a'))).toEqual({});
});

test('two judges of both protocols read the rubric and the episode; the value is the mean of their scores', async () => {
  let asked = 0;
  peer.answer = () => ({ text: `Score: ${[4, 8][asked++]}` });
  const judges = panelOf({ models: ['gpt', 'claude'], max_concurrency: 1 }).openRollout();
  const found = await judges.judge('Corridor', episode('<think>hi'));
  expect(found.clarity.map(({ model, score, cached }) => [model, score, cached])).toEqual([
    ['gpt', 0.4, false],
    ['claude', 0.8, false],
  ]);
  expect(found.clarity[0].cost).toBeCloseTo(found.clarity[0].tokens / 1000, 9);
  expect([found.clarity[0].tokens > 100, found.clarity[1].cost]).toEqual([true, 0]);
  expect(judgedComponents(found).clarity).toBeCloseTo(0.6, 12);
  const [openai, anthropic] = peer.requests;
  expect(JSON.stringify(openai.body)).toContain('Is the thought clear?');
  expect(JSON.stringify(openai.body)).toContain('<think>hi');
  expect(anthropic).toMatchObject({ path: '/v1/messages', body: { max_tokens: 512 } });
  expect(anthropic.body.system).toContain('Is the thought clear?');
});

describe('replies are paid for once', () => {
  test('equal episodes of a rollout, of later rollouts and of a resumed run are asked about once', async () => {
    const panel = panelOf();
    const judges = panel.openRollout();
    const both = await Promise.all([judge(judges), judge(judges), judge(judges, 'b')]);
    expect(both.map(([{ cached, score }]) => [cached, score])).toEqual([
      [false, 0.6],
      [true, 0.6],
      [false, 0.6],
    ]);
    expect((await judge(panel.openRollout()))[0]).toMatchObject({ cached: true, tokens: 0, score: 0.6 });
    panel.close();
    open.length = 0;
    expect((await judge(panelOf().openRollout()))[0]).toMatchObject({
      cached: true,
      score: 0.6,
      text: 'Fine. Score: 6',
    });
    expect(peer.requests).toHaveLength(2);
    expect(readFileSync(join(folder, 'judgements.jsonl'), 'utf8')).not.toContain(peer.key);
  });

  test('an edited rubric is a new question in the next rollout, and a removed one makes the component missing', async () => {
    const panel = panelOf();
    const judges = panel.openRollout();
    await judge(judges);
    writeFileSync(join(folder, 'clear.md'), 'Is it short?');
    expect((await judge(judges))[0].cached).toBe(true); // the rollout keeps its rubric
    expect((await judge(panel.openRollout()))[0].cached).toBe(false);
    rmSync(join(folder, 'clear.md'));
    expect((await judge(panel.openRollout()))[0]).toMatchObject({
      score: null,
      text: expect.stringContaining('cannot be read') as string,
    });
  });
});

describe('limits', () => {
  test('at most max_concurrency requests to a model run at the same time', async () => {
    peer.delayMs = 20;
    const judges = panelOf({ max_concurrency: 3 }).openRollout();
    await Promise.all(Array.from({ length: 12 }, (_, i) => judge(judges, `${i}`)));
    expect([peer.requests.length, peer.mostOpen]).toEqual([12, 3]);
  });

  test('a used-up budget leaves the component out, over resumes too, and is reported once', async () => {
    const judges = panelOf({ max_requests: 3 }).openRollout();
    const all = await Promise.all(Array.from({ length: 8 }, (_, i) => judge(judges, `${i}`)));
    expect(all.filter(([{ score }]) => score !== null)).toHaveLength(3);
    expect(peer.requests).toHaveLength(3);
    open.pop()!.close();
    expect((await judge(panelOf({ max_requests: 3 }).openRollout(), 'new'))[0].text).toBe('max_requests 3 is used up');
    expect(warnings).toEqual(
      Array<string>(2).fill('judge gpt gave no score for the reward component clarity: max_requests 3 is used up'),
    );
    expect(peer.requests).toHaveLength(3);
  });

  test.each([
    ['max_tokens', 1],
    ['max_cost', 0.001],
  ])('%s ends the requests once it is reached', async (key, limit) => {
    const judges = panelOf({ [key]: limit, max_concurrency: 1 }).openRollout();
    const [first, second] = await Promise.all([judge(judges, 'a'), judge(judges, 'b')]);
    expect([first[0].score, second[0].text]).toEqual([0.6, `${key} ${limit} is used up`]);
  });
});

describe('failures', () => {
  test('transient ones are retried', async () => {
    peer.mishaps = [mishap(503), { drop: true }];
    expect((await judge(panelOf().openRollout()))[0].score).toBe(0.6);
    expect(peer.requests).toHaveLength(3);
  });

  test('if all retries fail, the component is missing for the episode alone', async () => {
    peer.mishaps = Array<Mishap>(3).fill(mishap(503));
    const judges = panelOf().openRollout();
    const [failed] = await judge(judges);
    expect(failed).toMatchObject({ score: null, tokens: 0 });
    expect(failed.text).toContain('in 3 tries (503 told to fail): the reward component is missing for this episode');
    expect(judgedComponents({ clarity: [failed] })).toEqual({});
    expect((await judge(judges))[0].score).toBe(0.6); // asked again: the failure is not stored
  });

  test('a service that refuses all requests is asked once', async () => {
    const judges = panelOf({}, { OPENAI_API_KEY: 'sk-wrong', ANTHROPIC_API_KEY: 'x' }).openRollout();
    for (const raw of ['a', 'b', 'c']) expect((await judge(judges, raw))[0].score).toBeNull();
    expect(peer.requests).toHaveLength(1);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('refuses requests (401');
  });

  test.each([
    [{ text: 'I like it.' }, 'the reply has no line "Score: n" with 0 ≤ n ≤ 10'],
    [{ text: 'Score: 60' }, 'the reply has no line "Score: n" with 0 ≤ n ≤ 10'],
    [{ text: 'Score: 6', finish: 'length' as const }, 'the reply was cut at the token limit'],
    [{ text: '', finish: 'content_filter' as const }, 'the reply was filtered'],
  ])('the reply %o has no score, but is paid for', async (answer, why) => {
    peer.answer = () => answer;
    const [judged] = await judge(panelOf().openRollout());
    expect([judged.score, judged.text, judged.tokens > 0, judged.cost > 0]).toEqual([null, why, true, true]);
    expect(readFileSync(join(folder, 'judgements.jsonl'), 'utf8').split('\n')).toHaveLength(2);
  });

  test('a service that never answers is not waited for longer than the rollout waits', async () => {
    peer.mishaps = [{ hang: true }];
    const judges = panelOf({ wait_s: 7 }).openRollout();
    expect(judges.waitSeconds).toBe(7);
    const judging = judge(judges);
    await expect.poll(() => peer.requests.length).toBe(1);
    judges.end();
    expect((await judging)[0]).toMatchObject({ score: null, text: 'no answer within wait_s 7' });
    expect((await judge(judges, 'late'))[0].score).toBeNull();
    expect(peer.requests).toHaveLength(1);
  });

  test('a missing key or rubric is an error before the run starts', () => {
    expect(() => panelOf({}, {})).toThrow(
      'config: model_info.gpt needs an API key of openai: set the environment variable OPENAI_API_KEY',
    );
    expect(() => panelOf({ rubric: 'none.md' })).toThrow(
      /^config: custom_envs\.Corridor\.rewards\.judges\.clarity\.rubric is none\.md, which cannot be read/,
    );
    writeFileSync(join(folder, 'clear.md'), ' \n');
    expect(() => panelOf()).toThrow('is clear.md, which is empty: write the criteria into the file');
  });
});

test('in a rollout, episodes are judged, scored and measured; a missing judgement is counted', async () => {
  const options = corridorOptions();
  const Corridor = { ...options.custom_envs.Corridor, rewards: settings({ models: ['gpt', 'claude'] }) };
  const fails = (text: string) => text.includes('member one');
  peer.answer = messages => ({ text: fails(JSON.stringify(messages)) ? 'no idea' : 'Score: 5' });
  const script = (row: string) => `${row.endsWith('m01') ? 'member one' : 'go'}</think><answer>Right || Right</answer>`;
  const agent = new AgentProxy(new ScriptedGenerator(script), new CorridorPool(), characterTokenizer, {
    ...corridorOptions({ custom_envs: { Corridor } }),
    judges: panelOf({ models: ['gpt', 'claude'] }),
  });
  const { episodes, metrics } = await agent.rollout({ mode: 'train', step: 1, environments: [corridor] });
  expect(episodes.map(({ components }) => components)).toEqual([{ clarity: 0.5 }, {}, { clarity: 0.5 }, {}]);
  for (const { score, reward, penalty, components } of episodes)
    expect(score).toBeCloseTo(reward + penalty + 2 * (components?.clarity ?? 0), 12);
  expect(episodes[0].judgements?.clarity.map(({ model, score }) => [model, score])).toEqual([
    ['gpt', 0.5],
    ['claude', 0.5],
  ]);
  expect(metrics).toMatchObject({
    'Corridor/components/clarity': 0.5,
    'Corridor/judges/clarity/missing': 0.5,
    'Corridor/judges/clarity/requests': 8,
    'Corridor/judges/clarity/difference': 0,
  });
});
