// Options that the commands on environments share.
import { UserError } from '../../common/user-error';
import type { ConfigProblem } from '../../trainer/config/config-error';
import { applyOverrides } from '../../trainer/config/overrides';
import { emptyMap, toPlain } from '../../trainer/config/yaml-tree';

/** Collects an option that can be given several times. */
export const collect = (value: string, before: string[]): string[] => [...before, value];

/** Parses the values of `--set` options into an env_config. Throws a UserError. */
export function configOf(values: readonly string[]): Record<string, unknown> {
  const problems: ConfigProblem[] = [];
  const known = { isKnown: () => true, advise: () => '' };
  const tree = applyOverrides(emptyMap({ override: '' }), values, known, problems);
  if (problems.length > 0) throw new UserError(problems[0].message.replace(/^config:/, '--set:'));
  return toPlain(tree) as Record<string, unknown>;
}
