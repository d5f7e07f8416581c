// Which metric goes into which chart, and which chart into which group. What decides whether a run is well stands first; then what
// an RL practitioner looks at next; every other key falls into a group by its prefix, so that a new metric shows without a change here.
import type { Unit } from '../shared/format';

export interface ChartLine {
  key: string;
  /** What tells this line from its neighbours in the chart. */
  label: string;
}

export interface ChartSpec {
  /** Stable over the run: what is enlarged or folded is kept by it. */
  id: string;
  title: string;
  unit: Unit;
  lines: ChartLine[];
  /** Smallest and largest value of each step around the (single) line. */
  band?: { low: string; high: string };
}

export interface ChartGroup {
  id: string;
  title: string;
  charts: ChartSpec[];
}

interface Planned {
  title: string;
  /** Keys or patterns that share the chart; with `first` only the first that the run has. */
  keys: (string | RegExp)[];
  first?: boolean;
  /** Shades from smallest to largest around the mean, where the run logs them. */
  band?: boolean;
}

const pinned: Planned[] = [
  { title: 'success', keys: [/^train\/[^/]+\/success$/, /^val-env\/[^/]+\/success$/] },
  {
    title: 'reward',
    keys: ['critic/score/mean', 'critic/rewards/mean', 'charts/avg_episode_return', 'train/charts/avg_episode_return'],
    first: true,
  },
  { title: 'in-group reward std', keys: ['rollout/in_group_reward_std', 'rollout/in_group_std'], first: true },
  { title: 'entropy', keys: ['actor/entropy', 'actor/entropy_loss'], first: true },
];

const planned: { id: string; title: string; charts: Planned[] }[] = [
  {
    id: 'policy',
    title: 'Policy',
    charts: [
      { title: 'KL', keys: ['actor/ppo_kl', 'actor/kl_loss'] },
      { title: 'clip fraction', keys: ['actor/pg_clipfrac'] },
      { title: 'gradient norm', keys: ['actor/grad_norm'] },
      { title: 'policy loss', keys: ['actor/pg_loss'] },
      { title: 'learning rate', keys: ['actor/lr'] },
    ],
  },
  {
    id: 'filter',
    title: 'Rollout filter',
    charts: [
      { title: 'kept groups', keys: ['rollout/filter_kept_ratio'] },
      { title: 'groups without variance', keys: ['rollout/filter_zero_count'] },
      { title: 'reward std, kept groups', keys: ['rollout/chosen_in_group_reward_std'] },
    ],
  },
  {
    id: 'lengths',
    title: 'Lengths',
    charts: [
      {
        title: 'response length',
        keys: ['response_length/mean', 'train/response_length', 'response_length'],
        first: true,
        band: true,
      },
      { title: 'prompt length', keys: ['prompt_length/mean'], band: true },
      { title: 'responses at the limit', keys: ['response_length/clip_ratio'] },
    ],
  },
  {
    id: 'throughput',
    title: 'Throughput',
    charts: [
      { title: 'tokens/s', keys: ['perf/throughput'] },
      { title: 'rollout tokens/s', keys: ['perf/rollout_tokens_per_s'] },
      { title: 'training tokens/s', keys: ['perf/train_tokens_per_s'] },
      { title: 'time per step', keys: ['perf/time_per_step'] },
    ],
  },
];

const prefixTitles: Record<string, string> = {
  charts: 'Returns',
  actor: 'Policy, more',
  critic: 'Critic and advantages',
  rollout: 'Rollout',
  train: 'Training episodes',
  'val-env': 'Validation episodes',
  perf: 'Throughput, more',
  timing_s: 'Time',
  timing_per_token_ms: 'Time per token',
  response_length: 'Response length',
  prompt_length: 'Prompt length',
};

/** Groups in their order for the keys a run has. The first group (`pinned`) is always whole, with empty charts where keys are missing. */
export function arrange(keys: readonly string[]): ChartGroup[] {
  const free = new Set(keys.filter(key => key !== 'wall_s'));
  const take = ({ title, keys: wanted, first, band: banded }: Planned): ChartSpec => {
    const groups = wanted.map(want =>
      [...free].filter(key => (typeof want === 'string' ? key === want : want.test(key))),
    );
    const found = first ? (groups.find(group => group.length > 0) ?? []) : groups.flat();
    for (const key of found) free.delete(key);
    const band = banded && found.length === 1 ? bandOf(found[0], free) : undefined;
    return { id: title, title, unit: unitOf(found[0] ?? ''), lines: labelled(found), band };
  };
  const groups: ChartGroup[] = [{ id: 'pinned', title: 'Overview', charts: pinned.map(take) }];
  for (const { id, title, charts } of planned) {
    const specs = charts.map(take).filter(chart => chart.lines.length > 0);
    if (specs.length > 0) groups.push({ id, title, charts: specs });
  }
  return [...groups, ...byPrefix(free)];
}

/** How a key's values are to be read, from its name. */
export function unitOf(key: string): Unit {
  const name = key.slice(key.lastIndexOf('/') + 1);
  if (/^timing_s\//.test(key) || name === 'time_per_step') return 'seconds';
  if (
    /^(success|pg_clipfrac|pg_clipfrac_lower|vf_clipfrac|action_is_(valid|effective)|manager_invalid_action)$/.test(
      name,
    )
  )
    return 'share';
  if (/^pass@\d+$/.test(name) || /(^|_)(ratio|rate)$/.test(name)) return 'share';
  return 'number';
}

/** The rest, by the part before the first slash; mean, min and max of one thing share a chart. */
function byPrefix(free: Set<string>): ChartGroup[] {
  const groups = new Map<string, ChartGroup>();
  for (const key of [...free].sort(naturally)) {
    if (!free.has(key)) continue;
    const slash = key.indexOf('/');
    const prefix = slash < 0 ? 'other' : key.slice(0, slash);
    const band = bandOf(key, free);
    if (/\/(min|max)$/.test(key) && free.has(key.replace(/(min|max)$/, 'mean'))) continue;
    const rest = (slash < 0 ? key : key.slice(slash + 1)).replace(/\/mean$/, '');
    let group = groups.get(prefix);
    if (!group)
      groups.set(
        prefix,
        (group = { id: prefix, title: prefixTitles[prefix] ?? prefix.replaceAll('_', ' '), charts: [] }),
      );
    const title = rest.replaceAll('_', ' ').replaceAll('/', ' · ');
    group.charts.push({ id: key, title, unit: unitOf(key), lines: [{ key, label: title }], band });
  }
  const known = Object.keys(prefixTitles);
  const rank = (id: string) => (known.includes(id) ? known.indexOf(id) : known.length);
  return [...groups.values()].sort((a, b) => rank(a.id) - rank(b.id) || naturally(a.id, b.id));
}

/** Min and max beside a mean, taken out of the free keys. */
function bandOf(key: string, free: Set<string>): ChartSpec['band'] {
  const match = /^(.*)\/mean$/.exec(key);
  if (!match) return undefined;
  const [low, high] = [`${match[1]}/min`, `${match[1]}/max`];
  if (!free.has(low) || !free.has(high)) return undefined;
  free.delete(low);
  free.delete(high);
  return { low, high };
}

/** Labels as short as they still tell the lines apart: `train`, `val`, with the tag where there are several. */
function labelled(keys: string[]): ChartLine[] {
  const parts = keys.map(key => key.split('/'));
  const tags = new Set(parts.filter(part => part.length === 3).map(part => part[1]));
  return keys.map((key, i) => {
    const [prefix, tag] = parts[i];
    if (parts[i].length < 3) return { key, label: parts[i][parts[i].length - 1].replaceAll('_', ' ') };
    const side = prefix === 'val-env' ? 'val' : prefix;
    return { key, label: tags.size > 1 ? `${side} ${tag}` : side };
  });
}

const naturally = (a: string, b: string) => a.localeCompare(b, 'en', { numeric: true });
