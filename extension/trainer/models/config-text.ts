// config.json of a model that is written, as the text of the model's own with single values changed. Everything else stays to the letter:
// numbers such as 1.0 would come back from a JSON parser as 1, which readers with types refuse.

/** The text with another type of weights, by transformers' name for it; `torch_dtype` is added where no type is given. */
export function withType(config: string, type: string): string {
  const entry = /("(?:torch_)?dtype"\s*:\s*)(?:"[^"]*"|null)/g;
  if (entry.test(config)) return config.replace(entry, `$1"${type}"`);
  return config.replace('{', `{\n  "torch_dtype": "${type}",`);
}

/** The text for weights with an output head of their own: some readers tie by `tie_word_embeddings` alone, whatever is stored. */
export const withOwnHead = (config: string): string => config.replace(/("tie_word_embeddings"\s*:\s*)true/g, '$1false');
