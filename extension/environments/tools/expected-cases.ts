// Checks test cases that an environment's author wrote in `<file>.cases.json`. A case is an episode, given by seed and
// actions, with the expected results. `ragen env check` checks the cases after the contract.
import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import type { ContractCheck, Transcript } from '../../protocol/environment-tools';
import { readRegularSync } from '../../node/regular-file';
import { transcriptsOf } from './transcripts';

const casesSchema = z.array(
  z.strictObject({
    name: z.string(),
    config: z.record(z.string(), z.unknown()).default({}),
    seed: z.int().min(0),
    actions: z.array(z.union([z.number(), z.string()])),
    expect: z
      .strictObject({
        /** Observation after `reset`. */
        first: z.string(),
        /** Observation after the last step. The next three keys also describe the last step. */
        observation: z.string(),
        terminated: z.boolean(),
        truncated: z.boolean(),
        /** Expected values of some keys of the info; its other keys may have any value. */
        info: z.record(z.string(), z.unknown()),
        /** Sum of the rewards, compared with a tolerance of 1e-9. */
        return: z.number(),
      })
      .partial(),
  }),
);
type Expected = z.infer<typeof casesSchema>[number]['expect'];

/** Returns one check per case; an empty list if the file does not exist. */
export async function checkCases(
  { tag, source, config }: EnvironmentSpec,
  workspace: string,
): Promise<ContractCheck[]> {
  const file = source.replace(/\.[cm]?[jt]s$/, '.cases.json');
  if (!existsSync(file)) return [];
  const text = readRegularSync(file).toString('utf8');
  const parsed = casesSchema.safeParse(jsonOrNothing(text));
  if (!parsed.success) {
    const [{ path, message }] = parsed.error.issues;
    const evidence = `${file} ${path.length > 0 ? `has an error at ${path.join('.')} (${message})` : 'does not contain an array'}: write [{"name", "seed", "actions", "expect": {…}}, …].`;
    return [{ name: 'cases', state: 'failed', evidence, at: `${file}:1` }];
  }
  const asked = parsed.data.map(({ seed, actions, config: own }) => ({
    env: tag,
    seed,
    actions,
    config: { ...config, ...own },
  }));
  const transcripts = await transcriptsOf(asked, workspace);
  return parsed.data.map(({ name, expect, seed, actions }, i) => {
    const difference = differenceOf(expect, transcripts[i]);
    const played = `seed ${seed}, ${actions.length} action${actions.length === 1 ? '' : 's'}`;
    if (difference === undefined) return { name: `case: ${name}`, state: 'passed', evidence: `${played}.` };
    const line = text.slice(0, Math.max(0, text.indexOf(JSON.stringify(name)))).split('\n').length;
    return { name: `case: ${name}`, state: 'failed', evidence: `${played}: ${difference}.`, at: `${file}:${line}` };
  });
}

/** Returns the first difference from the expected results, as a clause; undefined if there is none. */
function differenceOf(expected: Expected, transcript: Transcript): string | undefined {
  if ('error' in transcript) return transcript.error;
  const last = transcript.steps.at(-1);
  const total = transcript.steps.reduce((sum, { reward }) => sum + reward, 0);
  const compare = (what: string, wanted: unknown, found: unknown) =>
    wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(found)
      ? `${what} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`
      : undefined;
  const differs = expected.return !== undefined && Math.abs(expected.return - total) > 1e-9;
  return (
    compare('the first observation', expected.first, transcript.observation) ??
    compare('the last observation', expected.observation, last?.observation ?? transcript.observation) ??
    (differs ? `the return is ${Number(total.toPrecision(12))}, not ${expected.return}` : undefined) ??
    compare('terminated', expected.terminated, last?.terminated) ??
    compare('truncated', expected.truncated, last?.truncated) ??
    Object.entries(expected.info ?? {})
      .map(([key, wanted]) => compare(`info.${key}`, wanted, last?.info[key]))
      .find(difference => difference !== undefined)
  );
}

function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
