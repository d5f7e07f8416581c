// Loads the definition of a plug-in: evaluates its bundle, checks its default export against the functions that its kind
// requires, and describes it. A function is called with copies of the trainer's data and without access to the trainer.
import { evaluateBundle } from '../../environments/runtime/worker/evaluate-bundle';
import { badValue, FaultError } from '../../environments/runtime/threads/fault';
import { plainValue, shown } from '../../environments/runtime/worker/returned-values';
import { pluginKinds, requiredFunctions } from '../../protocol/plugin-link';
import type { PluginCode, PluginDescription, PluginKind } from '../../protocol/plugin-link';

export type Definition = Record<string, unknown>;

/** Longest name of a plug-in. */
const longestName = 60;

/** @throws FaultError or the error of the code if the bundle does not load */
export function loadPlugin({ bundle, filename, source }: PluginCode): {
  definition: Definition;
  description: PluginDescription;
} {
  const found = evaluateBundle({ code: bundle, filename, source }).default;
  const remedy = 'end the file with "export default defineEstimator({ … })" or the function of another kind of plug-in';
  if (typeof found !== 'object' || found === null) throw bad('has no default export', remedy);
  const definition = found as Definition;
  const { kind, name } = definition;
  if (!isKind(kind)) throw bad(`has a default export of the kind ${shown(kind)}`, remedy);
  if (typeof name !== 'string' || !/^[\w.-]+$/.test(name) || name.length > longestName)
    throw badValue(
      `has the name ${shown(name)}`,
      `use letters, digits, hyphens, dots and underscores, at most ${longestName} characters`,
    );
  for (const wanted of requiredFunctions[kind])
    if (typeof definition[wanted] !== 'function')
      throw bad(`has a definition without the function ${wanted}`, `add ${wanted} to the ${kind}`);
  const entries = Object.entries(definition);
  return {
    definition,
    description: {
      kind,
      name,
      functions: entries.flatMap(([key, value]) => (typeof value === 'function' ? [key] : [])),
      properties: plainValue(
        Object.fromEntries(entries.filter(([key, value]) => typeof value !== 'function' && key !== 'kind')),
      ) as Record<string, unknown>,
    },
  };
}

const isKind = (kind: unknown): kind is PluginKind => (pluginKinds as readonly unknown[]).includes(kind);

const bad = (what: string, remedy: string) => new FaultError({ kind: 'build', what, remedy });
