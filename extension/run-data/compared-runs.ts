// Groups runs whose configurations differ only in seeds and names, as in a sweep, and finds the keys in which the
// groups differ. Uses the manifests and the settings changed during training. Pure functions.

import { isRecord } from '../common/json';
import { settingChangeSchema } from './run-events';
import type { Manifest } from './run-manifest';
import type { RunEvent } from './run-events';

/** Runs whose configurations differ only in their seeds. */
export interface ComparedGroup {
  label: string;
  /** Indices into the snapshot's runs, oldest first. */
  members: number[];
  /** This group's value for each configuration key in the snapshot's `keys`, as text. */
  values: string[];
}

/** A run to compare. */
export interface ComparedRun {
  manifest: Manifest;
  name: string;
  events: readonly RunEvent[];
}

/** Whether a key is ignored when configurations are compared. True for the seeds and for the run's name. */
const apart = (key: string): boolean => key.startsWith('seed.') || key === 'trainer.experiment_name';

/**
 * Returns the groups, in the order of their first runs, and the keys in which the groups differ, in configuration
 * order.
 */
export function groupRuns(
  runs: readonly ComparedRun[],
): Pick<{ groups: ComparedGroup[]; keys: string[] }, 'groups' | 'keys'> {
  const flat = runs.map(({ manifest, events }) => withChanges(leavesOf(manifest.config), events));
  const byConfiguration = new Map<string, number[]>();
  flat.forEach((leaves, i) => {
    const same = JSON.stringify([...leaves].sort(([a], [b]) => (a < b ? -1 : 1)));
    byConfiguration.set(same, [...(byConfiguration.get(same) ?? []), i]);
  });
  const members = [...byConfiguration.values()];
  const known = [...new Set(flat.flatMap(leaves => [...leaves.keys()]))];
  const differing = known.filter(key => new Set(members.map(([first]) => flat[first].get(key))).size > 1);
  const fingerprintOf = (key: string) =>
    JSON.stringify([lastPart(key), members.map(([first]) => flat[first].get(key))]);
  // A configuration may contain the same value under several keys, for example a path or the length of a schedule. If
  // keys with the same last part have equal values in every group, only the shortest of these keys is listed.
  const keys = differing.filter(
    key => !differing.some(other => other.length < key.length && fingerprintOf(other) === fingerprintOf(key)),
  );
  const groups = members.map(group => {
    const values = keys.map(key => flat[group[0]].get(key) ?? '–');
    return {
      label: labelOf(
        group.map(i => runs[i]),
        keys,
        values,
      ),
      members: group,
      values,
    };
  });
  return { groups, keys };
}

/**
 * Returns the label of a group. The label of a single run is its name. The label of several runs is their sweep point
 * or, without one, the values in which the group differs from other groups.
 */
function labelOf(runs: readonly ComparedRun[], keys: readonly string[], values: readonly string[]): string {
  const [first] = runs;
  if (runs.length === 1) return first.name;
  const points = new Set(runs.map(({ manifest }) => manifest.sweep?.point.replace(/, seed \d+$/, '')));
  const [point] = points;
  if (points.size === 1 && point !== undefined) return point;
  const shown = keys.slice(0, 3).map((key, i) => `${lastPart(key)}=${values[i]}`);
  return shown.join(', ') || first.manifest.config_name;
}

const lastPart = (key: string): string => key.slice(key.lastIndexOf('.') + 1);

/**
 * For each setting that was changed during training, replaces its leaf by a text such as `0.0004 → 0.001 (step 27)`.
 */
function withChanges(leaves: Map<string, string>, events: readonly RunEvent[]): Map<string, string> {
  for (const { kind, step, data } of events) {
    const change = kind === 'setting' ? settingChangeSchema.safeParse(data).data : undefined;
    const before = change && leaves.get(change.key);
    if (!change || before === undefined) continue;
    // If the length of a learning-rate schedule equals the run's number of steps, a change of one changes the other too
    // (run-data/changeable-settings.ts).
    const follows = (key: string) => lastPart(key) === lastPart(change.key) && lastPart(key) === 'total_training_steps';
    for (const [key, value] of leaves)
      if (key === change.key || (follows(key) && value === before))
        leaves.set(key, `${before} → ${change.to} (step ${step})`);
  }
  return leaves;
}

/** Returns the leaves of a configuration by dotted key, as text. Lists are leaves. */
function leavesOf(config: Readonly<Record<string, unknown>>, above = ''): Map<string, string> {
  const leaves = new Map<string, string>();
  for (const [name, value] of Object.entries(config)) {
    const key = above + name;
    if (apart(key)) continue;
    if (isRecord(value)) for (const [inner, text] of leavesOf(value, `${key}.`)) leaves.set(inner, text);
    else leaves.set(key, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return leaves;
}
