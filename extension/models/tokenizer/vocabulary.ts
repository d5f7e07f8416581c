// Checks that token ids have rows in the embedding. Only unused added tokens, such as a padding token, may lack a row.
// If the vocabulary is larger than the embedding, or a used id has no row, the files belong to different models.
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';

const ownTokenizer =
  'use tokenizer.json and weights of the same model, or extend the embedding to the size of the vocabulary';

/**
 * Checks the content of a tokenizer.json against an embedding of `rows` rows.
 * @param used ids that occur in every conversation
 * @throws UserError that names the number of ids and the number of rows
 */
export function checkVocabulary(folder: string, tokenizer: unknown, rows: number, used: readonly number[]): void {
  const { vocabulary, all } = tokenCounts(tokenizer);
  if (vocabulary > rows || used.some(id => id >= rows))
    throw new UserError(
      `${folder}: tokenizer.json has ${Math.max(vocabulary, all)} tokens, but the embedding has ${rows} rows (vocab_size of config.json): ${ownTokenizer}`,
    );
}

/** Throws a UserError for an id without a row; `rows` is the number of embedding rows of the model in `folder`. */
export function checkIds(sequences: Iterable<ArrayLike<number>>, rows: number, folder: string): void {
  for (const ids of sequences)
    for (let i = 0; i < ids.length; i++)
      if (ids[i] < 0 || ids[i] >= rows)
        throw new UserError(
          `${folder}: the tokenizer produced the id ${ids[i]}, but the embedding has ${rows} rows (vocab_size of config.json): ${ownTokenizer}`,
        );
}

/**
 * Returns the largest id plus one in two variants: `vocabulary` considers only the ids of the vocabulary; `all` also
 * considers the added tokens.
 */
function tokenCounts(tokenizer: unknown): { vocabulary: number; all: number } {
  const { model, added_tokens: added } = isRecord(tokenizer) ? tokenizer : {};
  const vocab = isRecord(model) ? model.vocab : undefined;
  const ids = Array.isArray(vocab) ? [vocab.length - 1] : isRecord(vocab) ? Object.values(vocab) : [];
  const own = new Set(Array.isArray(added) ? added.map(token => (isRecord(token) ? token.id : undefined)) : []);
  const count = (values: Iterable<unknown>): number => {
    let most = 0;
    for (const id of values) if (typeof id === 'number' && id + 1 > most) most = id + 1;
    return most;
  };
  return { vocabulary: count(ids.filter(id => !own.has(id))), all: count([...ids, ...own]) };
}
