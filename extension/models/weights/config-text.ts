// Edits single values in the text of a model's config.json and keeps everything else verbatim: a JSON round trip would
// turn 1.0 into 1, which strictly typed readers reject.

/** Sets the weights' type, by transformers' name; adds `torch_dtype` if no type is present. */
export function withType(config: string, type: string): string {
  const entry = /("(?:torch_)?dtype"\s*:\s*)(?:"[^"]*"|null)/g;
  if (entry.test(config)) return config.replace(entry, `$1"${type}"`);
  return config.replace('{', `{\n  "torch_dtype": "${type}",`);
}

/** Marks the output head as untied: some readers tie by `tie_word_embeddings` alone, even if a head is stored. */
export const withOwnHead = (config: string): string => config.replace(/("tie_word_embeddings"\s*:\s*)true/g, '$1false');
