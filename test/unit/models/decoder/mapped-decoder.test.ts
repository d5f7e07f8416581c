// Memory-mapped weights, also when the files are links out of their folder, as in the cache of Hugging Face's tools.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mapDecoder } from '../../../../extension/models/decoder/mapped-decoder';
import { frozenNetwork } from '../../../../extension/models/decoder/networks';
import { HostParameters } from '../../../../extension/models/weights/parameter-bank';
import { Policy } from '../../../../extension/models/policy';
import { Weights } from '../../../../extension/models/weights/weights';
import { goldenFolder } from '../../../support/small-models';

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'ragen-mapped-'))));
afterEach(() => rmSync(root, { recursive: true }));

/** The golden model in that cache's layout: contents in blobs, a snapshot of links to them. */
function linked(): string {
  const [blobs, snapshot] = ['blobs', 'snapshots/c0ffee'].map(name => join(root, name));
  for (const folder of [blobs, snapshot]) mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(goldenFolder('qwen2'))) {
    copyFileSync(join(goldenFolder('qwen2'), name), join(blobs, `0${name}`));
    symlinkSync(join('../../blobs', `0${name}`), join(snapshot, name));
  }
  return snapshot;
}

async function logprobs(folder: string): Promise<number[]> {
  const base = await mapDecoder(folder);
  const session = { threads: 1 };
  const policy = new Policy(frozenNetwork(base.config, base), new HostParameters(new Weights([]), session), session);
  const ids = Int32Array.of(4, 8, 15, 16, 23, 42);
  const { logprobs } = await policy.score(
    [{ ids, mask: new Uint8Array(6).fill(1) }],
    { maxTokens: 100, maxRows: 1 },
    1,
  );
  return [...logprobs[0]];
}

test('links out of the folder give the same results', async () => {
  const folder = linked();
  const expected = await logprobs(goldenFolder('qwen2'));
  expect(await logprobs(folder)).toEqual(expected);
  const alias = join(root, 'alias');
  symlinkSync(folder, alias); // the folder itself is a link
  expect(await logprobs(alias)).toEqual(expected);
});
