// Computes the number of episodes from a run's configuration, for runs that do not log the number.

export interface ConfiguredEpisodes {
  /** Episodes per training step; null if the configuration does not determine the number. */
  train: number | null;
  /** Episodes per validation, by environment tag. */
  val: Record<string, number>;
}

/** Returns the configured numbers of episodes. */
export function configuredEpisodes(config: Readonly<Record<string, unknown>>): ConfiguredEpisodes {
  const { train, val } = at(config, 'es_manager');
  const { env_groups, group_size } = at(train);
  const played = Number(env_groups) * Number(group_size);
  return { train: Number.isFinite(played) ? played : null, val: byTag(at(val), at(config, 'trainer')) };
}

function byTag(
  val: Record<string, unknown>,
  { validation_steps = 1 }: Record<string, unknown>,
): Record<string, number> {
  const { tags, n_groups } = at(val, 'env_configs');
  if (!Array.isArray(tags) || !Array.isArray(n_groups)) return {};
  const counts: Record<string, number> = {};
  tags.forEach((tag: unknown, i) => {
    const count = Number(n_groups[i]) * Number(val.group_size) * Number(validation_steps);
    if (Number.isFinite(count)) counts[String(tag)] = (counts[String(tag)] ?? 0) + count;
  });
  return counts;
}

/**
 * Returns `value` or, if `key` is given, the property `key` of `value`. If the result is not a record, returns an empty
 * record.
 */
function at(value: unknown, key?: string): Record<string, unknown> {
  const record = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  return key === undefined ? record : at(record[key]);
}
