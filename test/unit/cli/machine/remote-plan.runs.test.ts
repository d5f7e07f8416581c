// `ragen plan` for a model on a server: rates that are assumed, given and measured on a peer, and what is refused.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunReport } from '../../../../extension/trainer/plan/run-plan';
import { document, ragen } from '../../../support/terminal';
import { TinkerPeer } from '../../../support/tinker-peer';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

let workspace: Workspace;
let peer: TinkerPeer;
beforeAll(async () => {
  workspace = makeWorkspace();
  const config = readFileSync(join(workspace.folder, 'models/random/config.json'), 'utf8');
  peer = await TinkerPeer.start({ vocabSize: (JSON.parse(config) as { vocab_size: number }).vocab_size });
});
afterAll(async () => {
  await peer.stop();
  workspace.remove();
});

const onServer = (...more: string[]) => [
  ...['plan', '--config-name', 'words', 'workbench.engine=tinker', `workbench.engine_url=${peer.url}`],
  ...['lora.rank=8', ...more],
];
const plan = async (...more: string[]): Promise<RunReport> => {
  const { code, stderr, answer } = await document<{ run: RunReport }>(workspace.folder, onServer(...more));
  expect(code, stderr).toBe(0);
  return answer.run;
};

describe('a plan for a server', () => {
  test('assumes rates without asking the server', async () => {
    const before = peer.requests.length;
    const run = await plan();
    expect(peer.requests.length).toBe(before);
    expect(run).toMatchObject({ fits: true, remedy: null, largest_micro_batch: null, model: { trained: 'adapters' } });
    expect(run.remote).toMatchObject({ url: peer.url, rows_in_flight: 8, rates: { basis: 'assumed' } });
    expect(run.time!.basis).toBe('rates');
    expect(run.rows.map(({ what }) => what)).not.toContain('weights');
  });

  test('takes given rates: a hundredth of the rate makes sampling take a hundred times as long', async () => {
    const slow = await plan('--sampled-per-s', '1', '--round-trip-ms', '1');
    const fast = await plan('--sampled-per-s', '100', '--round-trip-ms', '1');
    expect(slow.remote!.rates).toMatchObject({ basis: 'given', sampled_per_s: 1, round_trip_s: 0.001 });
    expect(slow.remote!.limit).toBe('sampling rate');
    expect(slow.time!.generation_s / fast.time!.generation_s).toBeCloseTo(100, 0);
  });

  test('measures the rates with a model that it unloads, and whose weights it does not change', async () => {
    const before = peer.requests.length;
    const run = await plan('--measure');
    const paths = peer.requests.slice(before).map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(['asample', 'forward', 'forward_backward', 'optim_step']));
    expect(peer.models.size).toBe(0);
    expect(run.remote!.rates.basis).toBe('measured on the server');
    for (const rate of ['sampled_per_s', 'scored_per_s', 'trained_per_s', 'round_trip_s'] as const)
      expect(run.remote!.rates[rate], rate).toBeGreaterThan(0);
  });

  test('as text names the server, the requests, the bytes and the limit', async () => {
    const { code, stdout } = await ragen(workspace.folder, onServer());
    expect(code).toBe(0);
    expect(stdout).toContain(`on ${peer.url}`);
    expect(stdout).toMatch(/In flight: 8 rows; a step: at most [\d,]+ requests, .* sent, .* received/);
    expect(stdout).toMatch(/The rollout is limited by: (sampling rate|round trips|this machine)/);
    expect(stdout).not.toContain('Largest micro-batch');
  });

  test.each([
    [['--sampled-per-s', '0'], 'Give a number above 0'],
    [['--measure', '--sampled-per-s', '5'], 'plan: --measure and rates are both given'],
  ])('is refused with %j', async (flags, sentence) => {
    const { code, stderr } = await ragen(workspace.folder, onServer(...flags));
    expect(code).not.toBe(0);
    expect(stderr).toContain(sentence);
  });

  test('of the engine on this machine takes no rates', async () => {
    const { code, stderr } = await ragen(workspace.folder, ['plan', '--config-name', 'words', '--measure']);
    expect(code).not.toBe(0);
    expect(stderr).toContain('plan: rates of a server are given, but workbench.engine is local');
  });
});
