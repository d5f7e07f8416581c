// Generated runs for previews and page tests. Lines, events and episodes follow the run folder's schemas and resemble a
// real run: reward rises and plateaus, validation runs every tenth step, one step has a non-finite gradient, and
// episodes are from FrozenLake and Sokoban. The runs are seeded, so that screenshots can be compared.
import type { ScoreStrip } from '../../../extension/protocol/dashboard-page';
import { columnsOf } from '../../../extension/run-data/metric-segments';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import type { RunSummary } from '../../../extension/protocol/page-state';
import type { Episode, EpisodeTurn } from '../../../extension/run-data/episode';
import type { MetricsLine } from '../../../extension/run-data/step-lines';
import type { RunEvent } from '../../../extension/run-data/run-events';
import { generator } from '../fixtures/generator.mjs';
import { pageMarkup } from '../fixtures/markup-corpus.mjs';

const started = Date.UTC(2026, 1, 3, 9, 30);
const stamp = (seconds: number) => new Date(started + seconds * 1000).toISOString();

/** Summary of a run at `step` of `total`. */
export function runAt(step: number, total: number, change: Partial<RunSummary['status']> = {}): RunSummary {
  return {
    id: '20260203-0930-sokoban-a1f3',
    name: 'sokoban starpo-s',
    folder: '/work/ragen/.ragen/runs/20260203-0930-sokoban-a1f3',
    config_name: 'sokoban',
    created: stamp(0),
    live: true,
    status: {
      state: 'running',
      step,
      total_steps: total,
      success: step > 0 ? 0.412 : null,
      reward: step > 0 ? -0.31 : null,
      tokens_per_s: step > 0 ? 2310 : null,
      eta_s: step > 0 ? (total - step) * 21 : null,
      phase: 'rollout',
      updated: stamp(step * 21),
      ...change,
    },
  };
}

/** Metric lines of steps 1…count of that run. */
export function metricLines(count: number, seed = 7): MetricsLine[] {
  const random = generator(seed);
  const noise = (size: number) => (random() + random() + random() - 1.5) * size;
  const lines: MetricsLine[] = [];
  let wall = 0;
  for (let step = 1; step <= count; step++) {
    const t = step / Math.max(count, 200);
    const learnt = 1 / (1 + Math.exp(-9 * (t - 0.35)));
    const late = Math.max(0, t - 0.75) * 3;
    const generation = 11 + 3 * learnt + Math.abs(noise(2));
    const update = 6 + Math.abs(noise(0.6));
    wall += generation + update + 1.4;
    const line: MetricsLine = {
      step,
      time: stamp(wall),
      wall_s: wall,
      'train/CoordSokoban/success': clamp(0.06 + 0.46 * learnt - 0.1 * late + noise(0.09)),
      'train/CoordSokoban/pass@16': clamp(0.2 + 0.6 * learnt + noise(0.1)),
      'train/CoordSokoban/num_actions': 7.4 - 2.1 * learnt + noise(0.6),
      'train/CoordSokoban/action_is_effective': clamp(0.62 + 0.24 * learnt + noise(0.05)),
      'train/CoordSokoban/manager_invalid_action': clamp(0.24 * Math.exp(-6 * t) + Math.abs(noise(0.02))),
      'charts/avg_episode_return': -1.6 + 3.2 * learnt + noise(0.8),
      'critic/score/mean': -1.7 + 3.3 * learnt - late + noise(0.8),
      'critic/score/max': 8.9 + noise(1.6),
      'critic/score/min': -3.4 + noise(0.6),
      'critic/advantages/mean': noise(0.02),
      'critic/advantages/max': 3.2 + noise(0.5),
      'critic/advantages/min': -2.4 + noise(0.4),
      'critic/values/mean': -1.4 + 2.4 * learnt + noise(0.2),
      'critic/values/max': 2.2 + noise(0.4),
      'critic/values/min': -2.8 + noise(0.4),
      'critic/vf_loss': 0.9 * Math.exp(-3 * t) + 0.2 + Math.abs(noise(0.1)),
      'critic/vf_explained_var': clamp(0.7 * learnt + noise(0.1)),
      'actor/entropy': 1.32 - 0.7 * learnt + noise(0.06),
      'actor/ppo_kl': 0.0008 + 0.0014 * learnt + Math.abs(noise(0.0008)),
      'actor/kl_loss': 0.002 + 0.03 * learnt + Math.abs(noise(0.002)),
      'actor/pg_clipfrac': clamp(0.012 + 0.02 * learnt + Math.abs(noise(0.008))),
      'actor/pg_clipfrac_lower': clamp(Math.abs(noise(0.001))),
      'actor/pg_loss': -0.012 + noise(0.05),
      'actor/lr': 1e-6 * Math.min(1, step / 10),
      'rollout/in_group_reward_std': 2.1 + 1.4 * learnt - 1.6 * late + noise(0.5),
      'rollout/chosen_in_group_reward_std': 3.4 + 1.2 * learnt - 1.3 * late + noise(0.5),
      'rollout/filter_kept_ratio': clamp(Math.round((0.55 - 0.3 * late + noise(0.2)) * 8) / 8),
      'rollout/filter_kept_count': 4,
      'rollout/filter_zero_count': Math.max(0, Math.round(1.5 + 2 * late + noise(2))),
      'response_length/mean': 118 + 42 * t + noise(14),
      'response_length/max': 402 + noise(50),
      'response_length/min': 31 + noise(10),
      'response_length/clip_ratio': clamp(0.04 * Math.exp(-5 * t) + Math.abs(noise(0.006))),
      'prompt_length/mean': 241,
      'prompt_length/max': 260,
      'prompt_length/min': 236,
      'perf/throughput': 2200 + noise(240),
      'perf/rollout_tokens_per_s': 3150 + noise(320),
      'perf/train_tokens_per_s': 7400 + noise(500),
      'perf/total_num_tokens': 46000 + 9000 * t + noise(3000),
      'perf/time_per_step': generation + update + 1.4,
      'timing_s/gen': generation,
      'timing_s/env': 0.4 + Math.abs(noise(0.1)),
      'timing_s/old_log_prob': 1.1 + Math.abs(noise(0.1)),
      'timing_s/adv': 0.004 + Math.abs(noise(0.001)),
      'timing_s/update_actor': update,
      'timing_s/step': generation + update + 1.4,
    };
    // Metrics that are absent in a step with a non-finite gradient.
    if (step !== Math.round(count * 0.62))
      line['actor/grad_norm'] = 0.35 + 0.2 * learnt + Math.abs(noise(0.2)) + (random() < 0.02 ? 1.8 : 0);
    if (step % 10 === 0) {
      line['val-env/CoordSokoban/success'] = clamp(0.05 + 0.42 * learnt - 0.06 * late + noise(0.04));
      line['val-env/CoordSokoban/pass@1'] = line['val-env/CoordSokoban/success'];
      line['timing_s/testing'] = 32 + noise(3);
    }
    lines.push(line);
  }
  return lines;
}

/** Events of the run up to `step`. */
export function runEvents(step: number): RunEvent[] {
  const all: RunEvent[] = [];
  for (let at = 25; at <= step; at += 25) {
    all.push({
      time: stamp(at * 21),
      step: at,
      kind: 'checkpoint',
      message: `Checkpoint written to checkpoints/step-${String(at).padStart(6, '0')}`,
    });
  }
  const others: RunEvent[] = [
    {
      time: stamp(640),
      step: 31,
      kind: 'environment_version',
      message: 'CoordSokoban now runs envs/sokoban/environment.ts as edited (8f3c12d9 → 41be77a0)',
      data: { tag: 'CoordSokoban', from: '8f3c12d9', to: '41be77a0' },
    },
    {
      time: stamp(1300),
      step: 62,
      kind: 'setting',
      message: 'actor.optim.lr: 1e-6 → 5e-7',
      data: { key: 'actor_rollout_ref.actor.optim.lr', from: 1e-6, to: 5e-7 },
    },
    {
      time: stamp(2380),
      step: 113,
      kind: 'alarm',
      message: 'In-group reward std fell below 10 % of its first ten steps',
      data: { metric: 'rollout/in_group_reward_std', value: 0.19, baseline: 2.11 },
    },
  ];
  all.push(...others.filter(event => event.step <= step));
  return all.sort((a, b) => a.step - b.step);
}

/** Numbers of the lines as columns, including `step`. */
export const columnsOfLines = (lines: readonly MetricsLine[]): Map<string, Float64Array> =>
  columnsOf(lines.map(({ time: _, ...numbers }) => numbers as { step: number } & Record<string, number>));

/** Columns of many steps and metrics, generated without lines for speed. */
export function largeColumns(steps: number, metrics: number): Map<string, Float64Array> {
  const random = generator(3);
  const columns = new Map([
    ['step', Float64Array.from({ length: steps }, (_, i) => i + 1)],
    ['wall_s', Float64Array.from({ length: steps }, (_, i) => i * 0.7)],
  ]);
  const few = metricLines(1)[0];
  const names = Object.keys(few).filter(key => typeof few[key] === 'number' && !['step', 'wall_s'].includes(key));
  for (let m = 0; m < metrics; m++) {
    let value = random();
    const column = new Float64Array(steps);
    for (let i = 0; i < steps; i++) column[i] = value += (random() - 0.5) * 0.05;
    columns.set(names[m] ?? `custom/metric_${m}`, column);
  }
  return columns;
}

/** Score distribution per column over steps [from, to]: moves from failure to success as the run learns. */
export function scoreStrips(from: number, to: number, columns: number): ScoreStrip[] {
  const bins = 20;
  const counts = new Float32Array(columns * bins);
  const random = generator(11);
  for (let column = 0; column < columns; column++) {
    const learnt = (from + (column / columns) * (to - from)) / 200;
    for (let i = 0; i < 128; i++) {
      const bin = random() < 0.1 + 0.5 * learnt ? 17 + Math.floor(random() * 3) : Math.floor(random() * random() * 6);
      counts[column * bins + bin]++;
    }
  }
  const edge = (bin: number) => -3.4 + (bin / bins) * 14.3;
  const [lowest, highest] = [0, 0.5].map(part => Float64Array.from({ length: bins }, (_, bin) => edge(bin + part)));
  return [{ tag: 'CoordSokoban', low: -3.4, high: 10.9, columns, bins, counts, lowest, highest }];
}

/** Texts that act on the page if a page interprets them as markup. */
export const hostileTexts = pageMarkup.slice(0, 8);

const moves: Record<string, [number, number]> = { Up: [-1, 0], Down: [1, 0], Left: [0, -1], Right: [0, 1] };
const moveNames = Object.keys(moves);

interface Scene {
  tag: string;
  name: string;
  reset(random: () => number): string[];
  /** Changes the grid. Returns the reward, whether the episode ended, and whether it succeeded. */
  act(grid: string[], move: string): { reward: number; done: boolean; success: boolean };
}

const sokoban: Scene = {
  tag: 'CoordSokoban',
  name: 'sokoban',
  reset(random) {
    const grid = ['######', '#__O_#', '#____#', '#_X__#', '#____#', '######'].map(row => row.split(''));
    const player: [number, number] = [
      [4, 1],
      [4, 2],
      [2, 1],
      [4, 4],
    ][Math.floor(random() * 4)] as [number, number];
    grid[player[0]][player[1]] = 'P';
    return grid.map(row => row.join(''));
  },
  act(grid, move) {
    const cells = grid.map(row => row.split(''));
    const [row, column] = find(cells, ['P', 'S']);
    const [down, right] = moves[move];
    const next = cells[row + down][column + right];
    const beyond = cells[row + 2 * down]?.[column + 2 * right];
    const leave = () => (cells[row][column] = cells[row][column] === 'S' ? 'O' : '_');
    let reward = -0.1;
    let solved = false;
    if ('X√'.includes(next) && '_O'.includes(beyond ?? '#')) {
      cells[row + 2 * down][column + 2 * right] = beyond === 'O' ? '√' : 'X';
      solved = beyond === 'O';
      if (solved) reward += 11;
      leave();
      cells[row + down][column + right] = next === '√' ? 'S' : 'P';
    } else if ('_O'.includes(next)) {
      leave();
      cells[row + down][column + right] = next === 'O' ? 'S' : 'P';
    }
    write(grid, cells);
    return { reward, done: solved, success: solved };
  },
};

const frozenLake: Scene = {
  tag: 'FrozenLake',
  name: 'frozen_lake',
  reset(random) {
    return random() < 0.5 ? ['P___', '_O_O', '___O', 'O__G'] : ['__OG', 'P___', '_O__', '____'];
  },
  act(grid, move) {
    const cells = grid.map(row => row.split(''));
    const [row, column] = find(cells, ['P']);
    const [down, right] = moves[move];
    const to = [Math.max(0, Math.min(3, row + down)), Math.max(0, Math.min(3, column + right))];
    const under = cells[to[0]][to[1]];
    cells[row][column] = '_';
    cells[to[0]][to[1]] = under === 'O' ? 'X' : under === 'G' ? '√' : 'P';
    write(grid, cells);
    return { reward: under === 'G' ? 1 : 0, done: under === 'O' || under === 'G', success: under === 'G' };
  },
};

/** All episodes of a step: `groups` prompt groups of `size`, every second group FrozenLake. */
export function episodesOf(step: number, mode: 'train' | 'val', groups = 8, size = 16, seed = step): Episode[] {
  const episodes: Episode[] = [];
  for (let group = 0; group < groups; group++) {
    const kept = mode === 'val' ? null : group % 3 !== 2;
    for (let member = 0; member < size; member++) {
      episodes.push(episode(step, mode, group, member, size, kept, generator(seed * 7919 + group * 131 + member)));
    }
  }
  return episodes;
}

function episode(
  step: number,
  mode: 'train' | 'val',
  group: number,
  member: number,
  size: number,
  kept: boolean | null,
  random: () => number,
): Episode {
  const scene = group % 2 === 0 ? sokoban : frozenLake;
  // Validation uses the same prompts each time.
  const grid = scene.reset(generator(mode === 'val' ? group : step * 31 + group));
  const turns: EpisodeTurn[] = [];
  const tokens: Episode['tokens'] = { ids: [], mask: [], logprobs: [] };
  const give = (count: number, sampled: boolean) => {
    for (let i = 0; i < count; i++) {
      tokens.ids.push(Math.floor(random() * 151000));
      tokens.mask.push(sampled ? 1 : 0);
      tokens.logprobs.push(sampled ? -(random() ** 5) * 5 : null);
    }
  };
  give(180, false);
  let left = 10;
  let [done, success] = [false, false];
  for (let turn = 1; turn <= 5 && !done && left > 0; turn++) {
    const state = grid.join('\n');
    const wanted = plan(scene, grid, random() < 0.8 ? 2 : 1, random);
    if (random() < 0.12) wanted[wanted.length - 1] = 'Jump';
    const unparsed = random() < 0.05;
    const answer = wanted.join(' || ');
    const thought = thoughtOf(scene, grid, wanted, random);
    const executed: string[] = [];
    let reward = 0;
    for (const move of unparsed ? [] : wanted) {
      if (!moveNames.includes(move) || done || left === 0) continue;
      const outcome = scene.act(grid, move);
      executed.push(move);
      left--;
      reward += outcome.reward;
      done = outcome.done;
      success = outcome.success;
    }
    const from = tokens.ids.length;
    give(unparsed ? 96 : 28 + Math.floor(random() * 60), true);
    const span: [number, number] = [from, tokens.ids.length];
    give(70, false);
    const invalid = unparsed || wanted.some(move => !moveNames.includes(move));
    turns.push({
      turn,
      state,
      actions_left: left + executed.length,
      raw: unparsed
        ? `<think>${thought} I could also go around, or`
        : `<think>${thought}</think><answer>${answer}</answer>`,
      thought: unparsed ? null : thought,
      answer: unparsed ? null : answer,
      parsed: unparsed ? [] : wanted,
      executed,
      reward: Math.round(reward * 1e6) / 1e6,
      penalty: invalid ? -0.1 : 0,
      info: {
        action_is_effective: executed.length > 0,
        ...(executed.length === 0 ? { manager_invalid_action: true } : {}),
      },
      finish: unparsed ? 'length' : 'stop',
      span,
    });
  }
  const reward = sum(turns.map(turn => turn.reward));
  const penalty = sum(turns.map(turn => turn.penalty));
  const id = `${mode}-${String(step).padStart(6, '0')}-g${String(group).padStart(3, '0')}-m${String(member).padStart(2, '0')}`;
  const system = `You're a helpful assistant. You are solving the ${scene.name} puzzle.\nYour available actions are:\n${moveNames.join(', ')}`;
  return {
    id,
    step,
    mode,
    group_id: group,
    member,
    env_id: group * size + member,
    tag: scene.tag,
    environment: { name: scene.name, version: '41be77a09d3f5c2e8b6a1f04e7c9d2b35a8f60e1c4d7b9a2f3e5c6d8b0a1f2e3' },
    seed: mode === 'train' ? 10000 + step * 8 + group : 123 + group,
    terminated: done || left === 0,
    truncated: (done || left === 0) && !success,
    success,
    reward,
    penalty,
    score: sum([reward, penalty]),
    advantage: kept ? Math.round((reward - 1.2) * 180) / 1000 : null,
    kept,
    turns,
    final_state: grid.join('\n'),
    metrics: { success: success ? 1 : 0, num_actions: 10 - left },
    messages: [
      { role: 'system', content: system },
      ...turns.flatMap((turn, i) => [
        {
          role: 'user',
          content: `${i > 0 ? `Reward:\n${turns[i - 1].reward}\n` : ''}\nTurn ${turn.turn}:\nState:\n${turn.state}\nYou have ${turn.actions_left} actions left.\n`,
        },
        { role: 'assistant', content: turn.raw },
      ]),
    ],
    tokens,
  };
}

/** The list row of an episode. */
export function rowOf(episode: Episode): EpisodeRow {
  const { id, step, mode, group_id, member, tag, success, score, reward, advantage, kept } = episode;
  const tokens = episode.tokens.mask.filter(bit => bit === 1).length;
  return {
    id,
    step,
    mode,
    group_id,
    member,
    tag,
    success,
    score,
    reward,
    advantage,
    turns: episode.turns.length,
    tokens,
    kept,
  };
}

/** The next one or two moves of an episode; most moves follow the good policy. */
function plan(scene: Scene, grid: string[], count: number, random: () => number): string[] {
  const ahead = [...grid];
  return Array.from({ length: count }, () => {
    const move = random() < 0.14 ? moveNames[Math.floor(random() * 4)] : goodMove(scene, ahead);
    scene.act(ahead, move);
    return move;
  });
}

/** Policy that solves these boards: push the box right, then up; avoid the holes. */
function goodMove(scene: Scene, grid: string[]): string {
  const cells = grid.map(row => row.split(''));
  const [row, column] = find(cells, playerOf(scene));
  if (scene === frozenLake) {
    if (cells[row + 1]?.[column] !== undefined && cells[row + 1][column] !== 'O') return 'Down';
    return cells[row][column + 1] === 'O' ? 'Up' : 'Right';
  }
  const box = find(cells, ['X', '√']);
  if (box[1] === 3) {
    if (column === 3) return 'Up';
    return row < 4 ? 'Down' : 'Right';
  }
  if (row === 3 && column < 2) return 'Right';
  if (column > 1) return row === 3 ? 'Down' : 'Left';
  return row > 3 ? 'Up' : 'Down';
}

function thoughtOf(scene: Scene, grid: string[], wanted: string[], random: () => number): string {
  const [row, column] = find(
    grid.map(line => line.split('')),
    playerOf(scene),
  );
  const aim =
    scene === sokoban
      ? 'The box X must end on the target O, two rows above it.'
      : 'The goal G lies to the right and below; the holes O must be avoided.';
  const second = random() < 0.4 ? ' If I go straight I get stuck at the wall, so I take the other side first.' : '';
  return `I am at (${row}, ${column}). ${aim}${second} I will go ${wanted.join(' and then ')}.`;
}

/** Symbols that mark the player's cell. */
const playerOf = (scene: Scene) => (scene === sokoban ? ['P', 'S'] : ['P', 'X', '√']);

function find(cells: string[][], symbols: string[]): [number, number] {
  for (let row = 0; row < cells.length; row++) {
    const column = cells[row].findIndex(cell => symbols.includes(cell));
    if (column >= 0) return [row, column];
  }
  return [0, 0];
}

function write(grid: string[], cells: string[][]): void {
  cells.forEach((row, i) => (grid[i] = row.join('')));
}

const clamp = (value: number) => Math.max(0, Math.min(1, value));
const sum = (values: number[]) => Math.round(values.reduce((total, value) => total + value, 0) * 1e6) / 1e6;
