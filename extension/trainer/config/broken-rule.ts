// A violation of a rule, as the checks of a configuration return it.

/** One violated rule. `key` is the full key; `sentence` is a predicate such as `is 0: use 1 or more`. */
export interface BrokenRule {
  key: string;
  sentence: string;
  /** The value is a secret and must not appear in messages. */
  unshown?: true;
}
