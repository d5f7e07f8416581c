// Vision-language models against transformers on small random checkpoints (test/golden/make/vision_models.py): image
// features of pictures of several sizes, log-probs of conversations with two pictures, one or none, and gradients, each
// within 1e-4 relative.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Session } from '../../../../extension/engine/session/session';
import { encodeGraph } from '../../../../extension/models/vision/encoder-graphs';
import { encoderFeeds } from '../../../../extension/models/vision/encoder-feeds';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import { tensorsOf } from '../../../golden/tensors';
import { relativeError } from '../../../support/small-models';

describe.each(['qwen2_5_vl'])('%s', family => {
  const folder = join('test/golden/vision', family);
  const golden = tensorsOf(join(folder, 'golden.safetensors'));
  const of = (name: string): Float32Array => golden.get(name)!.data;
  const pictures = [0, 1].map(i => {
    const [rows, columns] = of(`grid.${i}`);
    return { rows, columns, values: of(`pixels.${i}`) };
  });

  it('encodes pictures as transformers does, together and each alone', async () => {
    const { config, encoder } = await readVisionModel(folder);
    const plan = { specs: encoder.specs, source: () => ({ kind: 'input' }) as const };
    const session = await Session.create(encodeGraph({ config: config.encoder, plan }, 'cpu'), { threads: 1 });
    try {
      for (const shown of [[0, 1], [1, 0], [0], [1]]) {
        const { feeds, counts } = encoderFeeds(
          config.encoder,
          shown.map(i => pictures[i]),
        );
        const { features } = await session.run({ ...feeds, ...encoder.feeds() });
        let at = 0;
        shown.forEach((i, k) => {
          const own = (features.data as Float32Array).subarray(at, (at += counts[k] * config.encoder.outputSize));
          expect(relativeError(own, of(`features.${i}`)), `picture ${i} of ${shown.join()}`).toBeLessThan(1e-5);
        });
      }
    } finally {
      await session.release();
    }
  });
});
