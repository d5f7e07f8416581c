// Edits single values in the text of a model's config.json and leaves the other text unchanged. Parsing and serialising
// the JSON would change 1.0 to 1, which strictly typed readers reject.

/**
 * Sets the type of the weights to `type`, which is a type name of the transformers library, such as `bfloat16`. Adds
 * `torch_dtype` if the text has no key for the type.
 */
export function withType(config: string, type: string): string {
  const entry = /("(?:torch_)?dtype"\s*:\s*)(?:"[^"]*"|null)/g;
  if (entry.test(config)) return config.replace(entry, `$1"${type}"`);
  return config.replace('{', `{\n  "torch_dtype": "${type}",`);
}

/**
 * Declares the output head as untied, because some readers ignore a stored head while `tie_word_embeddings` is true.
 */
export const withOwnHead = (config: string): string => config.replace(/("tie_word_embeddings"\s*:\s*)true/g, '$1false');
