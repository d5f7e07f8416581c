// Cross-scoring on a server: each text is scored after each prompt, as one sample per pair, because the server computes
// no shared prefixes.
import type { MaskedSample } from './server-model';

/**
 * Returns the sum of the log-probs of each text after each prompt, one row per text.
 * @param read returns the log-probs of samples
 */
export async function pairScores(
  prompts: readonly Int32Array[],
  texts: readonly Int32Array[],
  read: (samples: MaskedSample[]) => Promise<Float32Array[]>,
): Promise<Float64Array[]> {
  const pairs = texts.flatMap(text =>
    prompts.map((prompt): MaskedSample => {
      const ids = new Int32Array(prompt.length + text.length);
      ids.set(prompt);
      ids.set(text, prompt.length);
      return { ids, mask: new Uint8Array(ids.length).fill(1, prompt.length) };
    }),
  );
  const sums = (await read(pairs)).map(values => values.reduce((sum, value) => sum + value, 0));
  return texts.map((_, row) => Float64Array.from(prompts, (_, column) => sums[row * prompts.length + column]));
}
