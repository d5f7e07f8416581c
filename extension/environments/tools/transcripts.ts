// `ragen env play --input`: plays complete episodes, given by (environment, configuration, seed, actions), so that they
// can be compared with other implementations. All cases share one process; each call to this process contains the next
// action of every open episode. Contract: The results are in the order of the cases. Each action is a separate step. A
// case ends when its episode ends. The result of an invalid or failing case is an `error`.
import { z } from 'zod';
import type { EpisodeState, EpisodeStep } from '../../protocol/environment-link';
import type { Shown, ShownStep, Transcript } from '../../protocol/environment-tools';
import { UserError } from '../../common/user-error';
import type { EnvironmentProcess } from '../client/environment-process';
import { environmentSpec } from './environment-sources';
import { actionOf, type ActionNames } from './named-actions';
import { withLocation, loadEach, startToolProcess } from './tool-process';

const caseSchema = z.strictObject({
  env: z.string(),
  config: z.record(z.string(), z.unknown()).default({}),
  seed: z.int().min(0),
  member: z.int().min(0).default(0),
  mode: z.enum(['train', 'val']).default('train'),
  actions: z.array(z.union([z.number(), z.string()])).default([]),
});
type Case = z.infer<typeof caseSchema> & { index: number };

/** Cases with the same environment and configuration, which are loaded only once. */
interface Batch {
  env: string;
  config: Record<string, unknown>;
  cases: Case[];
}

/**
 * Returns the transcript of each case.
 * @param workspace folder to which paths of environments are relative
 */
export async function transcriptsOf(cases: readonly unknown[], workspace: string): Promise<Transcript[]> {
  const results: Transcript[] = [];
  const batches = new Map<string, Batch>();
  cases.forEach((given, index) => {
    const parsed = caseSchema.safeParse(given);
    if (!parsed.success) return void (results[index] = { error: issueSentence(parsed.error, index, given) });
    const { env, config } = parsed.data;
    const key = JSON.stringify([env, config]);
    const batch = batches.get(key);
    if (batch) batch.cases.push({ ...parsed.data, index });
    else batches.set(key, { env, config, cases: [{ ...parsed.data, index }] });
  });

  const environments = await startToolProcess(
    [...batches.values()].map(({ env, config }) => ({ env_type: env, config: config ?? {} })),
  );
  try {
    // Messages contain the tags, so each tag is the name of an environment. Environments that are loaded at the same
    // time must have distinct tags, so different configurations of an environment are played one after the other.
    for (let waiting = [...batches.values()]; waiting.length > 0;) {
      const wave = waiting.filter((batch, i) => waiting.findIndex(({ env }) => env === batch.env) === i);
      waiting = waiting.filter(batch => !wave.includes(batch));
      await playWave(environments, wave, workspace, results);
    }
  } finally {
    await environments.stop();
  }
  return results;
}

/** Plays batches concurrently; their environments must be distinct. */
async function playWave(
  environments: EnvironmentProcess,
  wave: readonly Batch[],
  workspace: string,
  results: Transcript[],
): Promise<void> {
  const refuse = ({ env, cases }: Batch, message: string) => {
    for (const { index } of cases) results[index] = { error: withLocation(message, env, `[${index}].config`) };
  };
  const specs = await Promise.all(
    wave.map(batch =>
      environmentSpec(batch.env, batch.config, workspace).catch((error: unknown) => {
        if (!(error instanceof UserError)) throw error;
        refuse(batch, error.message);
        return undefined;
      }),
    ),
  );
  const outcomes = await loadEach(
    environments,
    specs.filter(spec => spec !== undefined),
  );
  let next = 0;
  const players = wave.flatMap((batch, i) => {
    const outcome = specs[i] && outcomes[next++];
    if (!outcome) return [];
    if ('failure' in outcome) {
      refuse(batch, outcome.failure.message);
      return [];
    }
    return batch.cases.map(each => new Player(each, outcome.environment.actions));
  });

  const states = await environments.reset(players.map(player => player.reset));
  states.forEach((state, i) => players[i].begin(state));
  for (;;) {
    const open = players.filter(player => player.next !== undefined);
    if (open.length === 0) break;
    const steps = await environments.step(open.map(({ reset: { episode }, next }) => ({ episode, actions: [next!] })));
    steps.forEach((step, i) => open[i].take(step));
  }
  await environments.closeEpisodes(players.map(({ reset }) => reset.episode));
  for (const player of players) results[player.index] = player.transcript;
}

/** A case that is being played. */
class Player {
  readonly reset;
  private readonly actions: (number | string)[] = [];
  private first: Shown = { observation: '' };
  private readonly steps: ShownStep[] = [];
  private over = false;
  private error: string | undefined;

  constructor(
    private readonly given: Case,
    private names: ActionNames,
  ) {
    const { env: tag, index, seed, member, mode } = given;
    this.reset = { episode: `case ${index}`, tag, seed, member, mode };
  }

  get index(): number {
    return this.given.index;
  }

  /** The next action; undefined if the case has ended. */
  get next(): number | string | undefined {
    return this.over || this.error !== undefined ? undefined : this.actions[this.steps.length];
  }

  get transcript(): Transcript {
    return this.error === undefined ? { ...this.first, steps: this.steps } : { error: this.error };
  }

  begin(state: EpisodeState): void {
    if (state.error) return void (this.error = state.error.message);
    this.names = state.actions ?? this.names;
    this.first = shownOf(state);
    // With roles, each turn has its own legal actions.
    this.read(state.role === undefined ? this.given.actions.length : 1);
  }

  /** Maps the next `count` given actions by the current names. */
  private read(count: number): void {
    const from = this.actions.length;
    try {
      for (const action of this.given.actions.slice(from, from + count))
        this.actions.push(actionOf(action, this.names));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      this.error = `[${this.index}].actions: ${error.message}`;
    }
  }

  take(state: EpisodeStep): void {
    if (state.error) return void (this.error = state.error.message);
    const [{ reward, terminated, truncated, info }] = state.outcomes;
    this.steps.push({ ...shownOf(state), reward, terminated, truncated, info });
    this.over = terminated || truncated;
    if (state.role === undefined || this.over) return;
    this.names = state.actions ?? this.names;
    this.read(1);
  }
}

/** Returns the observation, the images (in base64) and the next role of a state. */
export function shownOf({ observation, images, role }: Pick<EpisodeState, 'observation' | 'images' | 'role'>): Shown {
  const shown = { observation, ...(role !== undefined && { role }) };
  if (!images || images.length === 0) return shown;
  return { ...shown, images: images.map(image => Buffer.from(image).toString('base64')) };
}

function issueSentence({ issues: [issue] }: z.ZodError, index: number, given: unknown): string {
  const at = `[${index}]${issue.path.map(part => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')}`;
  const form = 'give {"env": name or file, "config": {…}, "seed": whole number, "actions": [id or text, …]}';
  const value = issue.path.reduce<unknown>(
    (held, key) => (held as Record<PropertyKey, unknown> | undefined)?.[key],
    given,
  );
  const found = value === undefined ? 'is missing' : `is ${JSON.stringify(value)}`.slice(0, 80);
  return `${at} ${issue.code === 'unrecognized_keys' ? `has the unknown key ${issue.keys[0]}` : found}: ${form}`;
}
