// What a check of a configuration finds.

/** A violated rule; `sentence` continues after the key name. */
export interface BrokenRule {
  key: string;
  sentence: string;
  /** The value is a secret and must not appear in messages. */
  unshown?: true;
}
