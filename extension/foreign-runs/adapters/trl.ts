// TRL's GRPO and RLOO trainers: completions in Parquet, metrics in trainer_state.json of the newest checkpoint and in
// TensorBoard. Source: trl 0.28 to 1.16, grpo_trainer.py (log_completions); transformers 4 and 5, trainer_callback.py.
import { isRecord } from '../../common/json';
import type { Adapter, ForeignEpisode, MetricSource, RolloutUnit } from '../adapter';
import { chatMessages, conversation } from '../chat-turns';
import { eventFolders, eventSource, foldersWithTag } from '../event-files';
import { numbersIn, stepOf } from '../json-rows';
import { isCompleteParquet, parquetColumns, parquetRows } from '../parquet-rows';
import { onlyRun, stem } from '../peek';
import type { SourceFolder } from '../source-folder';

const completions = /^(.*?)\/?completions\/completions_(\d{1,12})\.parquet$/;
const states = /^(.*?)\/?(?:checkpoint-(\d{1,12})\/)?trainer_state\.json$/;

/** TRL's names of metrics that have the same meaning in RAGEN. */
const names: Record<string, string> = {
  reward: 'critic/score/mean',
  entropy: 'actor/entropy',
  grad_norm: 'actor/grad_norm',
  learning_rate: 'actor/lr',
  kl: 'actor/kl_loss',
  frac_reward_zero_std: 'rollout/zero_variance_ratio',
  'completions/mean_length': 'response_length/mean',
  'completions/min_length': 'response_length/min',
  'completions/max_length': 'response_length/max',
  'completions/clipped_ratio': 'response_length/clip_ratio',
};

export const trl: Adapter = {
  id: 'trl',
  async find(source) {
    const folders = new Set(source.matching(completions).map(({ match }) => match[1]));
    for (const { name, match } of source.matching(states)) if (await isGrpo(source, name)) folders.add(match[1]);
    for (const each of await foldersWithTag(source, /train\/(?:frac_reward_zero_std|rewards\/)/)) {
      const root = /^(.*?)\/?runs\/[^/]+$/.exec(each)?.[1];
      if (root !== undefined) folders.add(root);
    }
    const folder = onlyRun(source, 'TRL', [...folders]);
    if (folder === undefined) return null;
    const within = folder === '' ? '' : `${folder}/`;
    const hasCompletions = source.matching(completions).length > 0;
    const state = newestState(source, within);
    const hasEvents = [...eventFolders(source).keys()].some(each => each.startsWith(`${within}runs/`));
    const about = state && (await source.json(state));
    const rename = (name: string): string => names[name.replace(/^train\//, '')] ?? name.replace(/^train\//, '');
    return {
      trainer: { name: 'TRL' },
      name: stem(folder === '' ? source.path : folder),
      config: {},
      totalSteps: isRecord(about) ? (stepOf(about['max_steps']) ?? 0) : 0,
      found: [
        ...(hasCompletions ? [`rollouts: ${within}completions`] : []),
        ...(state === undefined ? [] : [`metrics: ${state}`]),
        ...(hasEvents ? [`metrics: ${within}runs`] : []),
      ],
      missing: [
        ...(hasCompletions ? [] : ['rollouts: set log_completions=True']),
        ...(await missingColumns(source, rewardNames(about))),
        ...(hasEvents ? [] : ['metrics between checkpoints: set report_to="tensorboard"']),
        'token ids and log-probs: TRL writes none',
      ],
      rolloutFields:
        'the columns prompt and completion and one for each reward function, which log_completions=True writes',
      rename,
      stepSeconds: ['step_time'],
      metrics: [
        stateSource(source, within),
        eventSource(source, `${within}runs`, each => each.startsWith(`${within}runs/`)),
      ],
      rollouts: () => Promise.resolve({ units: units(source, rewardNames(about)) }),
      async ended() {
        const newest = newestState(source, within);
        const read = newest && (await source.json(newest));
        if (!isRecord(read)) return false;
        const [done, most] = [stepOf(read['global_step']), stepOf(read['max_steps'])];
        return done !== undefined && most !== undefined && most > 0 && done >= most;
      },
    };
  },
};

async function isGrpo(source: SourceFolder, name: string): Promise<boolean> {
  const state = await source.json(name);
  const history = isRecord(state) && Array.isArray(state['log_history']) ? state['log_history'] : [];
  return history.some((entry: unknown) => isRecord(entry) && 'reward' in entry);
}

/** Returns the state file of the highest step. */
function newestState(source: SourceFolder, within: string): string | undefined {
  const found = source.matching(states).filter(({ name }) => name.startsWith(within));
  return found.sort((a, b) => Number(a.match[2] ?? Infinity) - Number(b.match[2] ?? Infinity)).at(-1)?.name;
}

/** Reads the history of the newest state file whenever the file has changed. */
function stateSource(source: SourceFolder, within: string): MetricSource {
  let seen = '';
  return {
    name: 'trainer_state.json',
    async read(add) {
      const newest = newestState(source, within);
      const stats = newest && source.stat(newest);
      if (!newest || !stats || seen === `${newest} ${stats.size} ${stats.mtimeMs}`) return false;
      const state = await source.json(newest);
      if (!isRecord(state) || !Array.isArray(state['log_history'])) return false; // the file is being written
      seen = `${newest} ${stats.size} ${stats.mtimeMs}`;
      for (const entry of state['log_history'] as unknown[]) {
        const step = isRecord(entry) ? stepOf(entry['step']) : undefined;
        if (step !== undefined) add({ step, values: numbersIn(entry as Record<string, unknown>, ['step']) });
      }
      return false;
    },
  };
}

function units(source: SourceFolder, rewards: readonly string[]): RolloutUnit[] {
  return source.matching(completions).map(({ name, match }) => ({
    ...{ mode: 'train', step: Number(match[2]), files: [name] },
    async *read() {
      if (!(await isCompleteParquet(source, name))) return; // it is being written
      for await (const row of parquetRows(source, name)) yield row && rolloutOf(row, rewards);
    },
  }));
}

/** Returns the names of the reward functions in the metrics of a state file. */
function rewardNames(state: unknown): string[] {
  const history = isRecord(state) && Array.isArray(state['log_history']) ? state['log_history'] : [];
  const keys = history.flatMap((entry: unknown) => (isRecord(entry) ? Object.keys(entry) : []));
  return [...new Set(keys.flatMap(key => /^rewards\/(.+)\/mean$/.exec(key)?.[1] ?? []))];
}

/** Returns what the newest file of completions lacks. */
async function missingColumns(source: SourceFolder, rewards: readonly string[]): Promise<string[]> {
  const newest = source.matching(completions).at(-1)?.name;
  const columns = newest === undefined ? undefined : await parquetColumns(source, newest);
  if (!columns) return [];
  const absent = ['prompt', 'completion', 'advantage', ...rewards].filter(name => !columns.includes(name));
  return absent.map(name => `column ${name} of ${newest}: log_completions=True of TRL 0.28 to 1.16 writes it`);
}

const known = ['step', 'prompt', 'completion', 'advantage', 'success'];

function rolloutOf(row: Record<string, unknown>, names: readonly string[]): ForeignEpisode | null {
  const { prompt, completion, advantage, success } = row;
  const isText = typeof prompt === 'string' && typeof completion === 'string';
  if (!isText && !(Array.isArray(prompt) && Array.isArray(completion))) return null;
  // One column per reward function; the trainer's weights are not stored, so the sum is unweighted.
  const columns = numbersIn(row, known);
  // Without the names of a state file, a name says what a reward is; a run whose names do not has only rewards.
  const named = Object.keys(columns).filter(name => (names.length > 0 ? names.includes(name) : /reward/i.test(name)));
  const functions = named.length > 0 || names.length > 0 ? named : Object.keys(columns);
  if (functions.length === 0) return null;
  return {
    group: isText ? prompt : JSON.stringify(prompt),
    tag: 'rollout',
    messages: isText ? conversation(prompt, completion) : [...chatMessages(prompt), ...chatMessages(completion)],
    reward: functions.reduce((sum, name) => sum + columns[name], 0),
    success: typeof success === 'boolean' ? success : null,
    advantage: typeof advantage === 'number' && Number.isFinite(advantage) ? advantage : null,
    metrics: columns,
  };
}
