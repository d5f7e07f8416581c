// A violated rule, as returned by the checks of a configuration.

/** One violated rule. `key` is the full key; `sentence` is a predicate such as `is 0: use 1 or more`. */
export interface BrokenRule {
  key: string;
  sentence: string;
  /** The value is a secret and must not appear in messages. */
  unshown?: true;
}
