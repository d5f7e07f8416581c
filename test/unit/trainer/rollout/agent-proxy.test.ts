// The turn loop with a scripted generator: the episodes in each turn, the end of the loop, and the effect of failures.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EpisodeActions, EpisodeStep } from '../../../../extension/protocol/environment-link';
import { episodeSchema } from '../../../../extension/run-data/episode';
import { UserError } from '../../../../extension/common/user-error';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { episodeRecord } from '../../../../extension/trainer/rollout/episode-record';
import { isTrainable } from '../../../../extension/trainer/rollout/rollout-batch';
import {
  characterTokenizer,
  corridor,
  corridorOptions,
  CorridorPool,
  ScriptedGenerator,
  showIds,
} from './scripted-rollout';

const step = (action: string) => `go</think><answer>${action}</answer>`;

function proxy(script: (row: string, turn: number) => string, changes: Parameters<typeof corridorOptions>[0] = {}) {
  const generator = new ScriptedGenerator(script);
  const pool = new CorridorPool();
  const agent = new AgentProxy(generator, pool, characterTokenizer, corridorOptions(changes));
  return { generator, pool, agent };
}
const train = { mode: 'train', step: 1, environments: [corridor] } as const;

describe('turn loop', () => {
  it('accepts answers in <ans> if the protocol specifies that tag', async () => {
    const { generator, agent } = proxy(() => 'go</think><ans>Right || Right</ans>', {
      agent_proxy: { ...corridorOptions().agent_proxy, answer_tag: 'ans' },
    });
    const { episodes } = await agent.rollout(train);
    expect(episodes.every(({ success, penalty }) => success && penalty === 0)).toBe(true);
    expect(characterTokenizer.decode(generator.calls[0].rows[0].append)).toContain('<ans> [your answer] </ans>');
  });

  it('generates only for unfinished episodes, and ends when all are finished', async () => {
    // group 0 starts in cell 1 and needs three steps right, group 1 in cell 2 needs two
    const { generator, pool, agent } = proxy(() => step('Right || Right'));
    const { episodes } = await agent.rollout(train);
    expect(generator.calls.map(({ rows }) => rows.map(({ row }) => row.slice(13)))).toEqual([
      ['g000-m00', 'g000-m01', 'g001-m00', 'g001-m01'],
      ['g000-m00', 'g000-m01'],
    ]);
    expect(episodes.map(({ success, turns }) => [success, turns.length])).toEqual([
      [true, 2],
      [true, 2],
      [true, 1],
      [true, 1],
    ]);
    expect([generator.live.size, pool.live.size]).toEqual([0, 0]);
  });

  it('stops at max_turn without setting terminated or truncated', async () => {
    const { generator, agent } = proxy(() => step('Up'));
    const { episodes, metrics } = await agent.rollout(train);
    expect(generator.calls).toHaveLength(3);
    expect(episodes.every(({ terminated, truncated, success }) => !terminated && !truncated && !success)).toBe(true);
    expect(metrics['num_turns/mean']).toBe(3);
  });

  it('appends only new tokens to a row in each turn; concatenated, they are the episode’s ids', async () => {
    const { generator, agent } = proxy(() => step('Up'));
    const { episodes } = await agent.rollout(train);
    const [{ ids, turns: spans }] = episodes[0].samples;
    const appended = generator.calls.map(({ rows }) => rows[0].append);
    const joined = appended.flatMap((append, turn) => [...append, ...ids.slice(...spans[turn].span)]);
    expect(joined).toEqual([...ids]);
    expect(showIds(appended[1])).toContain('Reward:\n-0.1\n\nTurn 2:\nState:\n');
  });

  it('seeds each row by step, env_id and turn, independent of the batch', async () => {
    const seedsOf = async (script: (row: string) => string, atStep: number, mode: 'train' | 'val' = 'train') => {
      const { generator, agent } = proxy(script);
      await agent.rollout({ ...train, mode, step: atStep });
      return new Map(
        generator.calls.flatMap(({ rows }, turn) => rows.map(({ row, seed }) => [`${row}/${turn}`, seed])),
      );
    };
    const all = await seedsOf(() => step('Up'), 1);
    expect(new Set(all.values()).size).toBe(12);
    expect(await seedsOf(() => step('Up'), 1)).toEqual(all);
    const alone = await seedsOf(row => step(row.endsWith('g000-m01') ? 'Up' : 'Left || Left || Left'), 1);
    for (const [key, seed] of alone) expect(all.get(key)).toBe(seed);
    const later = await seedsOf(() => step('Up'), 2);
    expect([...later.values()].some(seed => [...all.values()].includes(seed))).toBe(false);
    expect([...(await seedsOf(() => step('Up'), 1, 'val')).values()]).not.toContain([...all.values()][0]);
  });

  it('validates with separate groups, seeds and sampling, and leaves the training seeds unchanged', async () => {
    const { generator, pool, agent } = proxy(() => step('Up'));
    const { episodes } = await agent.rollout({ ...train, mode: 'val', step: 0 });
    expect(episodes.map(({ seed }) => seed)).toEqual([123, 124]);
    expect(generator.calls[0].sampling).toMatchObject({ temperature: 0.5, max_new_tokens: 100, max_model_len: 4000 });
    expect(agent.state).toEqual({ seed_counter: 0 });
    expect(pool.resets[0]).toMatchObject({ mode: 'val', seed: 123, member: 0, tag: 'Corridor' });
    await agent.rollout(train);
    expect(generator.calls.at(-1)?.sampling.temperature).toBe(1);
    expect(agent.state).toEqual({ seed_counter: 2 });
  });

  it('includes the warning in the sequence that is trained on', async () => {
    const { agent } = proxy((_, turn) => (turn === 1 ? 'no tags' : step('Up')));
    const { episodes } = await agent.rollout(train);
    const text = showIds(episodes[0].samples[0].ids);
    expect(text).toContain('Reward:\n0\n\nTurn 2:');
    expect(text.match(/no valid action/g)).toHaveLength(1);
    expect(episodes[0].turns[0]).toMatchObject({ raw: '<think>no tags', thought: null, penalty: -0.1 });
  });
});

describe('full context', () => {
  it('ends an episode whose next prompt does not fit', async () => {
    const options = corridorOptions();
    const { agent, pool } = proxy(() => step('Up'), { rollout: { ...options.rollout, max_model_len: 1000 } });
    const play = pool.step.bind(pool);
    pool.step = async episodes => (await play(episodes)).map(state => ({ ...state, observation: 'x'.repeat(1000) }));
    const { episodes, metrics } = await agent.rollout(train);
    expect(episodes[0]).toMatchObject({ context_full: true, truncated: true, terminated: false });
    expect(episodes[0].turns).toHaveLength(1);
    expect(episodes[0].samples[0].ids.length).toBeLessThanOrEqual(1000);
    expect(isTrainable(episodes[0])).toBe(true);
    expect(metrics).toMatchObject({ context_full: 1, context_shortened: 0 });
  });

  it('plays no turn of an episode whose first prompt does not fit, and continues the others', async () => {
    const { agent, pool } = proxy(() => step('Up'));
    const reset = pool.reset.bind(pool);
    pool.reset = async episodes =>
      (await reset(episodes)).map((state, index) =>
        index === 0 ? { ...state, observation: 'x'.repeat(4000) } : state,
      );
    const { episodes, metrics } = await agent.rollout(train);
    expect(episodes[0]).toMatchObject({ context_full: true, turns: [] });
    expect(episodes.map(isTrainable)).toEqual([false, true, true, true]);
    expect(metrics.context_full).toBe(0.25);
  });

  it('refuses a batch in which no episode fits', async () => {
    const options = corridorOptions();
    const { agent, pool } = proxy(() => step('Up'), { rollout: { ...options.rollout, max_model_len: 200 } });
    await expect(agent.rollout(train)).rejects.toThrow(
      /^config: environment Corridor returned an observation that is too long \(turn 1, .* exceed .*max_model_len 200: /,
    );
    await expect(agent.rollout(train)).rejects.toBeInstanceOf(UserError);
    expect(pool.live.size).toBe(0);
  });
});

describe('failures', () => {
  it('are reported, counted, and excluded from the means', async () => {
    const { agent, pool } = proxy(() => step('Right || Right'));
    pool.failure = (episode, actions) =>
      actions.length > 0 && episode.endsWith('g001-m01') ? 'ice.ts:7 threw' : undefined;
    const reported: unknown[] = [];
    const { episodes, metrics } = await agent.rollout({ ...train, onFailure: event => reported.push(event) });
    expect(reported).toEqual([
      {
        id: 'train-000001-g001-m01',
        tag: 'Corridor',
        seed: 10001,
        failure: { kind: 'threw', message: 'ice.ts:7 threw' },
      },
    ]);
    expect(episodes.map(isTrainable)).toEqual([true, true, true, false]);
    expect(metrics.env_error_rate).toBe(0.25);
    expect(metrics['Corridor/success']).toBe(1);
    expect(episodeRecord(episodes[3]).error).toBe('ice.ts:7 threw');
  });

  it('end the rollout with the first failure’s message if there are too many', async () => {
    const { agent, pool, generator } = proxy(() => step('Up'));
    pool.failure = episode => (episode.endsWith('g000-m00') ? undefined : `no map for ${episode.slice(13)}`);
    const rollout = agent.rollout(train);
    await expect(rollout).rejects.toBeInstanceOf(UserError);
    await expect(rollout).rejects.toThrow(/^no map for g000-m01 \(3 of 4 episodes failed; .*share is 0.5\)$/);
    expect(generator.calls).toHaveLength(0);
    expect(pool.live.size).toBe(0);
    expect(agent.state).toEqual({ seed_counter: 0 });
  });
});

describe('slow episodes', () => {
  // Time is simulated: it passes only while all episodes wait.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());
  // eslint-disable-next-line no-restricted-syntax -- in simulated time
  const wait = (ms: number) => new Promise(done => setTimeout(done, ms));
  /** Lets simulated time pass until all timers have fired. */
  async function inTime<T>(playing: Promise<T>): Promise<T> {
    playing.catch(() => undefined); // the caller handles the rejection
    await vi.runAllTimersAsync();
    return playing;
  }
  /** A pool whose steps take `delay(episode)` ms and are reported when they finish. */
  class SlowPool extends CorridorPool {
    delay: (episode: string) => number = () => 0;
    override async step(episodes: EpisodeActions[], onSteps?: (ready: EpisodeStep[]) => void): Promise<EpisodeStep[]> {
      const delays = new Set(episodes.map(({ episode }) => this.delay(episode)));
      const parts = [...delays].map(async ms => {
        const own = episodes.filter(({ episode }) => this.delay(episode) === ms);
        if (ms > 0) await wait(ms);
        const steps = await super.step(own);
        onSteps?.(steps);
        return steps;
      });
      const steps = new Map((await Promise.all(parts)).flat().map(step => [step.episode, step]));
      return episodes.map(({ episode }) => steps.get(episode)!);
    }
  }
  const slow = 'g000-m01';
  const options = corridorOptions();
  const many = { ...options.es_manager, train: { ...options.es_manager.train, group_size: 4 } };
  function slowProxy(changes: Partial<ReturnType<typeof corridorOptions>> = {}, script = () => step('Up')) {
    const generator = new ScriptedGenerator(script);
    const pool = new SlowPool();
    pool.delay = episode => (episode.endsWith(slow) ? 150 : 0);
    return {
      generator,
      pool,
      agent: new AgentProxy(generator, pool, characterTokenizer, corridorOptions({ es_manager: many, ...changes })),
    };
  }
  /** Depends on the clock, not on the episodes. */
  const waited = expect.any(Number) as number;
  const namesOf = ({ rows }: { rows: { row: string }[] }) => rows.map(({ row }) => row.slice(13));

  it('delay no other episode, and give the same results as in lock step', async () => {
    const waiting = slowProxy({ async_rollout: false });
    const expected = await inTime(waiting.agent.rollout(train));
    expect(waiting.generator.calls.map(call => call.rows.length)).toEqual([8, 8, 8]);
    const going = slowProxy();
    expect(await inTime(going.agent.rollout(train))).toEqual({ ...expected, environmentSeconds: waited });
    expect(going.generator.calls.map(call => (call.rows.length === 1 ? namesOf(call)[0] : call.rows.length))).toEqual([
      8,
      7,
      7,
      slow,
      slow,
    ]);
    expect(going.generator.live.size + going.pool.live.size).toBe(0);
  });

  it('take the sum of the times of their own turns, while other episodes continue', async () => {
    const { agent, pool } = slowProxy();
    pool.delay = episode => ({ 'g000-m00': 30, 'g000-m01': 150, 'g001-m02': 60 })[episode.slice(13)] ?? 0;
    const start = performance.now();
    await inTime(agent.rollout(train));
    expect(performance.now() - start).toBe(3 * 150);
  });

  it('are generated together with the others if they are only slightly late', async () => {
    const { agent, generator, pool } = slowProxy();
    const generate = generator.generate.bind(generator);
    generator.generate = async (...call) => (await wait(400), generate(...call)); // gathering takes 1/20 of this
    pool.delay = episode => (episode.endsWith(slow) ? 3 : 0);
    await inTime(agent.rollout(train));
    expect(generator.calls.map(({ rows }) => rows.length)).toEqual([8, 8, 8]);
    expect(generator.calls.flatMap(namesOf)).toEqual(
      Array.from({ length: 3 }, () => ['g000', 'g001'].flatMap(g => [0, 1, 2, 3].map(m => `${g}-m0${m}`))).flat(),
    );
  });

  it('have the same results as in lock step in windowed contexts', async () => {
    const agent_proxy = { ...options.agent_proxy, context_window_mode: 'single_turn' as const, max_context_window: 2 };
    const expected = await inTime(slowProxy({ async_rollout: false, agent_proxy }).agent.rollout(train));
    expect(await inTime(slowProxy({ agent_proxy }).agent.rollout(train))).toEqual({
      ...expected,
      environmentSeconds: waited,
    });
  });

  it('are asked for in parts of a large wave if the generator wants that, with the same results', async () => {
    const fast = (changes: Parameters<typeof slowProxy>[0]) => {
      const made = slowProxy(changes);
      made.pool.delay = () => 0;
      return made;
    };
    const expected = await inTime(fast({}).agent.rollout(train));
    const parted = fast({});
    Object.assign(parted.generator, { rowsPerCall: 3 });
    expect(await inTime(parted.agent.rollout(train))).toEqual({ ...expected, environmentSeconds: waited });
    const sizes = parted.generator.calls.map(({ rows }) => rows.length);
    expect(sizes.toSorted()).toEqual([2, 2, 2, 3, 3, 3, 3, 3, 3]);
    // The second turn of the first rows does not wait for the first turn of the last ones.
    const second = parted.generator.calls.findIndex((call, k) => k > 0 && namesOf(call)[0] === 'g000-m00');
    expect(second).toBeLessThan(parted.generator.calls.findIndex(call => namesOf(call).includes('g001-m03')));
    expect(parted.generator.live.size + parted.pool.live.size).toBe(0);

    const lockStep = fast({ async_rollout: false });
    Object.assign(lockStep.generator, { rowsPerCall: 3 });
    await inTime(lockStep.agent.rollout(train));
    expect(lockStep.generator.calls.map(({ rows }) => rows.length)).toEqual([8, 8, 8]);
  });

  it('fail individually; if another error ends the rollout, no call continues in the background', async () => {
    const { agent, pool } = slowProxy();
    pool.failure = (episode, actions) => (episode.endsWith(slow) && actions.length > 0 ? 'late and wrong' : undefined);
    const { episodes } = await inTime(agent.rollout(train));
    expect(episodes.map(({ error }) => error?.message)).toEqual([
      undefined,
      'late and wrong',
      ...Array.from({ length: 6 }, () => undefined),
    ]);

    const broken = slowProxy();
    const generate = broken.generator.generate.bind(broken.generator);
    broken.generator.generate = async (...call) => {
      if (broken.generator.calls.length > 0) throw new Error('engine stopped');
      return generate(...call);
    };
    await expect(inTime(broken.agent.rollout(train))).rejects.toThrow('engine stopped');
    expect(broken.generator.calls).toHaveLength(1);
    expect([broken.generator.live.size, broken.pool.live.size]).toEqual([0, 0]);
    expect(broken.agent.state).toEqual({ seed_counter: 0 });
  });
});

describe('stopping and progress', () => {
  it('ends between turns, releases all rows and episodes, and the same batch can be played again', async () => {
    const control = new AbortController();
    const { agent, pool, generator } = proxy((_, turn) => {
      if (turn === 2) control.abort(new Error('paused'));
      return step('Up');
    });
    let steps = 0;
    const play = pool.step.bind(pool);
    pool.step = episodes => (steps++, play(episodes));
    await expect(agent.rollout({ ...train, signal: control.signal })).rejects.toThrow('paused');
    expect(steps).toBe(1);
    expect(generator.calls).toHaveLength(2);
    expect([generator.live.size, pool.live.size]).toEqual([0, 0]);
    expect((await agent.rollout(train)).episodes[0].seed).toBe(10000);
  });

  it('keeps the first error when releasing fails too', async () => {
    const { agent, pool } = proxy(() => {
      throw new Error('engine stopped');
    });
    pool.closeEpisodes = () => Promise.reject(new Error('pipe closed'));
    await expect(agent.rollout(train)).rejects.toThrow('engine stopped');
  });

  it('reports progress that only increases, up to 1', async () => {
    const { agent } = proxy(() => step('Right || Right'));
    const seen: number[] = [];
    await agent.rollout({ ...train, onProgress: fraction => seen.push(fraction) });
    expect(seen.at(-1)).toBe(1);
    expect(seen.length).toBeGreaterThan(2);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    expect(seen.every(fraction => fraction >= 0 && fraction <= 1)).toBe(true);
  });
});

describe('metrics and records', () => {
  it('average over the tag’s episodes, with pass@k by group', async () => {
    const { agent } = proxy(row => step(row.endsWith('g001-m00') ? 'Right || Right' : 'Left || Left || Left'));
    const { episodes, metrics } = await agent.rollout(train);
    expect(metrics).toMatchObject({
      'Corridor/success': 0.25,
      'Corridor/pass@2': 0.5,
      'Corridor/non-zero/success': 1,
      'response_length/clip_ratio': 0,
      env_error_rate: 0,
      context_full: 0,
    });
    expect(episodes.map(({ metrics }) => metrics['pass@2'])).toEqual([0, 0, 1, 1]);
    expect(metrics['charts/avg_episode_return']).toBeCloseTo(
      episodes.reduce((sum, { reward }) => sum + reward, 0) / 4,
      12,
    );
    const sampled = episodes.map(({ samples }) => samples[0].mask.reduce((sum, bit) => sum + bit, 0));
    expect(metrics.response_length).toBe(sampled.reduce((a, b) => a + b, 0) / 4);
  });

  it('report truncated answers', async () => {
    const { agent } = proxy(() => 'on and on…');
    const { episodes, metrics } = await agent.rollout(train);
    expect(metrics['response_length/clip_ratio']).toBe(1);
    expect(episodes[0].turns[0].finish).toBe('length');
  });

  it('contain the fields of an episode line in the run folder', async () => {
    const { agent } = proxy(() => step('Up'));
    const { episodes } = await agent.rollout(train);
    const advantages = [Float32Array.from(episodes[0].samples[0].mask, bit => bit * 0.1)];
    const line = JSON.parse(
      JSON.stringify(episodeRecord(episodes[0], { kept: true, samples: advantages.map(row => ({ advantages: row })) })),
    );
    expect(episodeSchema.parse(line)).toEqual(line);
    expect(line.advantage).toBeCloseTo(0.1, 6);
    expect(line.kept).toBe(true);
    expect(Float32Array.from(line.tokens.advantages)).toEqual(advantages[0]);
    expect(line.tokens.logprobs.map((logprob: number | null) => logprob !== null)).toEqual(
      [...episodes[0].samples[0].mask].map(Boolean),
    );
    const validation = episodeRecord(episodes[0]);
    expect([validation.kept, validation.advantage, validation.tokens.advantages]).toEqual([null, null, undefined]);
  });
});
