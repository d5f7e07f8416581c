// Cross-scoring on a server: scores each text after each prompt. Each pair of a prompt and a text is sent as a sample
// of its own, because the server cannot share the computation of a common prefix.
import type { MaskedSample } from './server-model';

/**
 * Returns one row per text, with one number per prompt: the sum of the text's log-probs after this prompt.
 * @param read returns the log-probs of the samples that it receives
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
