// Runs engine-life.ts on WebGPU in a separate process, in which onnxruntime logs the placement of each node. Started by
// placements.test.ts.
import ort from 'onnxruntime-node';
import { computeSmall } from '../../extension/models/self-check';
import { engineLife } from './engine-life';

async function main(): Promise<void> {
  const create = ort.InferenceSession.create.bind(ort.InferenceSession) as (
    model: Uint8Array,
    options: ort.InferenceSession.SessionOptions,
  ) => Promise<ort.InferenceSession>;
  Object.assign(ort.InferenceSession, {
    create: (model: Uint8Array, options: ort.InferenceSession.SessionOptions) => {
      const onDevice = options.executionProviders?.includes('webgpu'); // the self-check also creates CPU sessions
      return create(model, onDevice ? { ...options, logSeverityLevel: 0 } : options);
    },
  });
  const lora = { rank: 4, alpha: 8, dropout: 0, targets: 'all-linear' };
  const device = 'webgpu';
  await engineLife({ device, modelFolder: 'test/golden/qwen2', lora: null, checkpointed: true });
  await engineLife({ device, modelFolder: 'test/golden/qwen3', lora, checkpointed: false });
  if (process.argv.includes('halves')) await computeSmall({ provider: device, threads: 1 }, 'float16');
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
