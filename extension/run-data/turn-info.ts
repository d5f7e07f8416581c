// The info of a turn, merged from the infos of its actions.

/** Merges the infos of a turn's actions: for each key, the value of the last action is used; `raw_reward` is summed. */
export function mergedInfo(infos: readonly Record<string, unknown>[]): Record<string, unknown> {
  const merged: Record<string, unknown> = Object.fromEntries(infos.flatMap(info => Object.entries(info)));
  const raw = infos.map(info => info.raw_reward).filter(value => typeof value === 'number');
  if (raw.length > 0) merged.raw_reward = raw.reduce((sum, value) => sum + value, 0);
  return merged;
}
