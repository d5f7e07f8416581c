// Names of the modules that every environment can import wherever its file lies. `provided-modules.ts` holds what they stand for.

export const providedNames = [
  'zod',
  'zod/v4',
  'ragen-workbench/api',
  'ragen-workbench/api/board-text',
  'ragen-workbench/api/random/numpy-legacy',
  'ragen-workbench/api/random/pcg64',
  'ragen-workbench/api/random/python-random',
] as const;

export type ProvidedName = (typeof providedNames)[number];

export function isProvided(name: string): name is ProvidedName {
  return (providedNames as readonly string[]).includes(name);
}
