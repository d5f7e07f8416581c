// A violated rule, as returned by the checks of a configuration.

/** One violated rule. `key` is the full key; `sentence` is a predicate such as `is 0: use 1 or more`. */
export interface BrokenRule {
  key: string;
  sentence: string;
  /** True if the value is a secret, which messages must not show. */
  unshown?: true;
}
