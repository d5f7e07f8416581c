// The live view of a training run: its messages equal the played episodes, and it leaves the run bitwise unchanged.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { TrainerClient } from '../../../../extension/vscode/processes/trainer-client';
import type { WatchChoice, WatchedEpisode } from '../../../../extension/protocol/trainer-link';
import { installation } from '../../../../extension/node/installation';
import type { Viewer } from '../../../../extension/trainer/live/live-view';
import type { PlayedSoFar } from '../../../../extension/trainer/rollout/rollout-request';
import { RunControl } from '../../../../extension/trainer/run/run-control';
import { TrainerServer, endpointFor } from '../../../../extension/trainer/live/trainer-server';
import { readRun, until } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import type { Trained } from '../../../support/train-here';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';
import { partial } from '../../../support/partial';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const status = {
  ...{ state: 'running' as const, step: 2, total_steps: 9, success: null, reward: null },
  ...{ tokens_per_s: null, eta_s: null, phase: 'rollout', updated: '2026-01-01T00:00:00.000Z' },
};

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

/** A client that assembles episodes from its messages. */
class Watching {
  readonly over = new Map<string, WatchedEpisode>();
  readonly tokens: { id: string; turn: number; text: string }[] = [];
  ends = 0;
  private shown: WatchedEpisode | null = null;

  episode(episode: WatchedEpisode | null): void {
    this.shown = episode && structuredClone(episode);
    if (episode === null) this.ends++;
    else if (episode.over) this.over.set(episode.id, structuredClone(episode));
  }

  tokens_(id: string, turn: number, at: number, tokens: WatchedEpisode['turns'][number]['tokens']): void {
    expect(this.shown?.id).toBe(id);
    const newest = this.shown!.turns.at(-1)!;
    expect([newest.turn, newest.outcome, newest.tokens.length]).toEqual([turn, null, at]);
    newest.tokens.push(...tokens);
    this.tokens.push({ id, turn, text: newest.tokens.map(({ text }) => text).join('') });
  }

  as = (): Viewer => ({ episode: episode => this.episode(episode), tokens: (...told) => this.tokens_(...told) });
}

const train = (look?: Parameters<typeof trainHere>[3]) =>
  trainHere(workspace, ['trainer.save_freq=2', 'trainer.test_freq=2'], 2, look);
const watching = (viewer: Viewer, choice: WatchChoice = {}) =>
  train(control => void control.live.watch(viewer, viewer, choice));

const plain = (text: string) => text.replaceAll(/<\|\w+\|>/g, '');

/** Lines without values that depend on the clock, and the checksums of the newest checkpoint. */
function bits({ folder, lines }: Trained) {
  const timed = /^(timing_s|timing_per_token_ms|perf)\/|^(time|wall_s)$/;
  const { checkpoints } = readRun(folder);
  const checkpoint = readFileSync(join(folder, 'checkpoints', checkpoints.at(-1)!, 'checkpoint.json'), 'utf8');
  return {
    lines: lines.map(line => Object.fromEntries(Object.entries(line).filter(([key]) => !timed.test(key)))),
    files: (JSON.parse(checkpoint) as { files: object }).files,
  };
}

test('metrics and weights equal those of an unwatched run', async () => {
  const alone = await train();
  const watcher = new Watching();
  const watched = await watching(watcher.as());
  expect(bits(watched)).toEqual(bits(alone));
  expect(watched.episodes.map(({ tokens }) => tokens)).toEqual(alone.episodes.map(({ tokens }) => tokens));

  // The messages contain the complete episodes of each step, as stored.
  expect(watcher.ends).toBe(3); // including the last step's validation
  const played = [...watcher.over.values()].map(({ mode, step }) => `${mode} ${step}`);
  expect(new Set(played)).toEqual(new Set(['train 1', 'train 2', 'val 2']));
  for (const episode of watcher.over.values()) {
    const stored = [...watched.episodes, ...watched.validation].find(({ id }) => id === episode.id)!;
    expect(episode).toMatchObject({
      ...{ tag: 'Words', seed: stored.seed, member: stored.member, state: stored.final_state },
      ...{ success: stored.success, reward: stored.reward, penalty: stored.penalty },
    });
    expect(episode.turns).toHaveLength(stored.turns.length);
    episode.turns.forEach(({ prefix, tokens, outcome, state }, i) => {
      const { thought, answer, executed, reward, penalty, span } = stored.turns[i];
      expect(state).toBe(stored.turns[i].state);
      expect(outcome).toEqual({ thought, answer, executed, reward, penalty });
      // A stored answer has no special tokens, even if the random model sampled a special token inside the answer.
      expect(plain(prefix + tokens.map(({ text }) => text).join(''))).toContain(plain(stored.turns[i].raw));
      const logprobs = stored.tokens.logprobs.slice(...span);
      tokens.forEach(({ logprob }, t) => expect(logprob).toBeCloseTo(logprobs[t]!, 6));
    });
  }
});

test('a client that watches a group receives only episodes of the group, and none after it leaves', async () => {
  const watcher = new Watching();
  const run = await watching(watcher.as(), { group: 1 });
  expect([...watcher.over.keys()].every(id => id.includes('-g001-'))).toBe(true);
  expect(watcher.over.size).toBeGreaterThan(0);
  expect(run.episodes.some(({ group_id }) => group_id === 0)).toBe(true);

  const gone = new Watching();
  const viewer = gone.as();
  await train(control => {
    control.live.watch(viewer, viewer, {});
    control.live.unwatch(viewer);
  });
  expect([gone.over.size, gone.tokens.length, gone.ends]).toEqual([0, 0, 0]);
});

test('the extension host’s link reconnects after each restart of the trainer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-live-'));
  const endpoint = endpointFor(folder, 'live');
  const played = (member: number) => ({
    entry: {
      ...{ id: `train-000003-g000-m0${member}`, tag: 'Words', group_id: 0, member, seed: 9, env_id: member },
      ...{
        state: 'word 2',
        pictures: [],
        version: 'abc',
        max_actions_per_traj: 4,
        num_actions: 0,
        penalty: 0,
        history: [],
      },
      ...{ terminated: false, truncated: false, success: false, environment: { name: 'words' } },
    },
    context: { samples: () => [] },
  });
  const received: string[] = [];
  const watcher = {
    tags: (tags: string[]) => void received.push(`tags ${tags.join()}`),
    episode: (episode: WatchedEpisode | null) =>
      void received.push(`episode ${episode?.id ?? ''} ${episode?.state ?? ''}`),
    tokens: ({ at, tokens }: { at: number; tokens: { text: string }[] }) =>
      void received.push(`tokens ${at} ${tokens.map(({ text }) => text).join('')}`),
  };
  const lease = { pid: process.pid, started: '', endpoint, token: 'secret' };
  const listener = {
    status: () => undefined,
    appended: () => undefined,
    event: () => undefined,
    problem: () => undefined,
  };
  const link = new TrainerClient('live', 'live', async () => lease, listener);
  link.watch({ tag: 'Words' }, watcher);
  try {
    for (let session = 0; session < 2; session++) {
      const control = new RunControl(() => undefined);
      let sample: (ids: number[], logprobs: number[]) => void = () => undefined;
      const watched: (string | null)[] = [];
      const server = await TrainerServer.listen(endpoint, {
        id: 'live',
        token: 'secret',
        control,
        status: () => status,
      });
      control.live.connect({
        engine: { watch: (row, tell) => (watched.push(row), (sample = tell ?? sample)) },
        tokenizer: { decode: ids => ids.map(id => ` w${id}`).join('') },
        ...{ prefix: () => '<answer>', tags: ['Words', 'Others'], maxTurn: 3 },
      });
      const all = partial<PlayedSoFar[]>([played(0), played(1)]);
      received.length = 0;
      await until('it watches', () => received.includes('tags Words,Others'));
      control.live.begun({ mode: 'train', step: 3 }, all);
      control.live.asked(all);
      sample([4, 5], [-1, -2]);
      sample([6], [-1]);
      await until('tokens came', () => received.includes('tokens 0  w4 w5 w6'));
      all[0].entry.terminated = true;
      control.live.ready(all); // moves on to the remaining episode
      await until('the next came', () => received.some(each => each.startsWith('episode train-000003-g000-m01')));
      control.live.asked([all[1]]);
      expect(watched.at(-1)).toBe(all[1].entry.id);
      control.live.ended();
      await until('it is over', () => received.at(-1) === 'episode  ');
      expect(watched.at(-1)).toBeNull();
      await server.close();
    }
  } finally {
    link.dispose();
    rmSync(folder, { recursive: true });
  }
});
