// Defines the schema of the setting `ragen.engines`, which contains the engine servers that the user has saved under a
// name. Also determines the configuration keys of a run on a saved server, and the environment variable for an API key
// that the user types. The setting contains names of environment variables, never API keys. Must not import `vscode`.
import { z } from 'zod';
import { isServerUrl, withoutSlash } from '../../common/server-url';
import { formatNumber } from '../../common/numbers';
import type { EngineReport } from '../../protocol/engine-report';
import type { PlanQuestion } from '../../protocol/planning';

const factsSchema = z.object({
  at: z.string().describe('time of the probe'),
  server: z.string().nullable(),
  critic: z.boolean().nullable(),
  keepsVersions: z.boolean().nullable(),
  roundTripMs: z.number(),
  tokensPerSecond: z.number().nullable(),
});
/** What the newest test of a server has found. */
export type EngineFacts = z.infer<typeof factsSchema>;

const entrySchema = z.object({
  url: z.string().refine(isServerUrl),
  /** The base model's name on the server. May be null if the server offers only one model. */
  model: z.string().min(1).nullable().default(null),
  /** Name of the environment variable that contains the API key; null if the server needs no key. */
  keyEnv: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]{0,63}$/)
    .nullable()
    .default(null),
  facts: factsSchema.nullable().default(null).catch(null),
});
export type EngineEntry = z.infer<typeof entrySchema>;
export interface KeptEngine extends EngineEntry {
  name: string;
}

/** Returns the engines in the setting. Invalid entries are left out. */
export function enginesIn(setting: unknown): KeptEngine[] {
  const entries = typeof setting === 'object' && setting !== null ? Object.entries(setting) : [];
  return entries.flatMap(([name, value]) => {
    const entry = entrySchema.safeParse(value);
    return entry.success ? [{ name, ...entry.data, url: withoutSlash(entry.data.url) }] : [];
  });
}

/** Returns configuration keys with the values that a run on this server needs. */
export const engineKeys = ({ url, model, keyEnv }: EngineEntry): Record<string, string | null> => ({
  'workbench.engine': 'tinker',
  'workbench.engine_url': url,
  'workbench.engine_model': model,
  'workbench.engine_api_key_env': keyEnv,
});

/** Returns the rates of the newest test as the rates of a plan: seconds, and tokens per second. */
export function planRates({ facts }: Pick<EngineEntry, 'facts'>): NonNullable<PlanQuestion['rates']> {
  return {
    ...(facts?.roundTripMs && { round_trip_s: facts.roundTripMs / 1000 }),
    ...(facts?.tokensPerSecond && { sampled_per_s: facts.tokensPerSecond }),
  };
}

/** Returns the facts of a test report that are saved in the setting. */
export function factsOf({ server, measured, round_trip_ms }: EngineReport, at: Date): EngineFacts {
  return {
    at: at.toISOString(),
    server: server && `${server.name} ${server.version}`,
    critic: measured?.critic?.offered ?? null,
    keepsVersions: measured?.keeps_versions ?? null,
    roundTripMs: round_trip_ms,
    tokensPerSecond: measured?.sampling.tokens_per_s ?? null,
  };
}

/** Returns one line about a saved engine: its model and its rates. */
export function engineLine({ model, facts }: EngineEntry): string {
  const rates = facts
    ? [
        ...(facts.tokensPerSecond === null ? [] : [`${formatNumber(facts.tokensPerSecond)} tokens/s`]),
        `round trip ${formatNumber(facts.roundTripMs)} ms`,
        `tested ${facts.at.slice(0, 10)}`,
      ]
    : ['not tested'];
  return [...(model === null ? [] : [model]), ...rates].join(' · ');
}

/** Returns the environment variable under whose name the editor stores a key that the user typed for a server. */
export function keyVariableFor(url: string): string {
  const host = new URL(url).host.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
  return `ENGINE_${host.replace(/^_+|_+$/g, '').slice(0, 48)}_API_KEY`;
}

/** Returns an unused name for a server: the server's host, followed by a number if this name is already used. */
export function freeEngineName(url: string, used: readonly string[]): string {
  const { hostname } = new URL(url);
  for (let counter = 1; ; counter++) {
    const name = counter === 1 ? hostname : `${hostname} ${counter}`;
    if (!used.includes(name)) return name;
  }
}

/** Returns why a name cannot be used, or undefined if it can be used. `own` is the current name of the entry. */
export function engineNameProblem(name: string, used: readonly string[], own: string | undefined): string | undefined {
  if (name.trim() === '') return 'The name is empty: enter a name, such as cluster.';
  if (name.length > 60) return 'The name has more than 60 characters: shorten it.';
  return name !== own && used.includes(name) ? `${name} is in use: choose another name.` : undefined;
}

/** Returns the arguments with which `ragen engine probe` tests a server. */
export const probeArguments = (
  { url, model, keyEnv }: Omit<EngineEntry, 'facts'>,
  more: readonly string[],
): string[] => [
  'engine',
  'probe',
  url,
  ...(keyEnv === null ? ['--no-key'] : ['--key-env', keyEnv]),
  ...(model === null ? [] : ['--model', model]),
  ...more,
];
