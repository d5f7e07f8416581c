// `npm run bench -- --gpu`: training and rollouts of Qwen2.5-0.5B's shape (random weights, adapters of rank 16) on a
// GPU, after the trainer's self-check of the device; with a Python, PyTorch on the same card. Without a usable GPU it
// says so in one sentence, and the program ends with `noGpuCode`.
import { spawnSync } from 'node:child_process';
import { autoCandidates, providerStates } from '../../extension/engine/session/devices';
import type { Provider } from '../../extension/engine/session/devices';
import { selfCheckApart } from '../../extension/models/self-check';
import { adapted, drawn, tiny } from './definitions';
import type { Definition, ModelSettings } from './definitions';

/** Exit code if no GPU was measured. */
export const noGpuCode = 3;

export interface MeasuredDevice {
  provider: Provider;
  /** The device's name and the findings of its self-check. */
  about: string;
}

/**
 * The devices to measure: `asked`, or all GPUs that pass their self-check.
 * @param say receives the findings
 * @param found the GPUs of this machine, and how they are checked
 * @returns the devices; or a sentence that says why there is none
 */
export async function gpuDevices(
  asked: Provider | undefined,
  say: (text: string) => void,
  found = { candidates: async () => autoCandidates(await providerStates()), check: checkDevice },
): Promise<MeasuredDevice[] | string> {
  if (asked === 'cpu') return [{ provider: 'cpu', about: 'cpu: not a GPU, only a trial of this script' }];
  const providers = asked === undefined ? await found.candidates() : [asked];
  if (providers.length === 0)
    return 'bench: no GPU was measured, because this machine has neither a render node nor the CUDA library of onnxruntime';
  const names = cardNames();
  const usable: MeasuredDevice[] = [];
  const refused: string[] = [];
  for (const provider of providers) {
    say(`self-check of ${provider} …`);
    const { passed, about } = await found.check(provider);
    const text = `${provider}${names === '' ? '' : ` on ${names}`}: ${about}`;
    say(`  ${text}`);
    if (passed) usable.push({ provider, about: text });
    else refused.push(text);
  }
  return usable.length > 0
    ? usable
    : `bench: no GPU was measured, because the self-check failed (${refused.join('; ')})`;
}

const checkDevice = (provider: Provider): ReturnType<typeof selfCheckApart> => selfCheckApart(provider, 0);

/** Names of NVIDIA's cards with their driver; empty if there is none. */
function cardNames(): string {
  const query = ['--query-gpu=name,driver_version', '--format=csv,noheader'];
  const { status, stdout } = spawnSync('nvidia-smi', query, { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n').join('; ') : '';
}

/** The benchmarks of a device: in float32, and with products in float16 on a bfloat16 base. */
export function gpuDefinitions({ provider }: MeasuredDevice, small: boolean): Definition[] {
  const shape: ModelSettings = small ? { ...tiny, lora_rank: 16 } : adapted;
  const size = small ? 'd128/4L' : '0.5B';
  const group = small ? { groups: 1, group_size: 4 } : { groups: 2, group_size: 16 };
  const precisions = provider === 'cpu' ? (['float32'] as const) : (['float32', 'float16'] as const);
  return precisions.flatMap((precision): Definition[] => {
    const base_dtype = precision === 'float32' ? 'float32' : 'bfloat16';
    const model = { ...shape, base_dtype, device: provider, precision } as const;
    const common = { unit: 'tokens/s', better: 'higher', target: null, large: true, operations: null } as const;
    const lengths = drawn(group.groups * group.group_size, small ? 16 : 64, small ? 32 : 256, 1);
    const kind = `${size} LoRA r16, ${provider}, ${precision}`;
    return [
      {
        ...common,
        name: `training, ${kind}`,
        kind: 'training',
        settings: { ...model, ...group, prompt: small ? 16 : 160, lengths, sampled: 24, observed: 16, steps: 1 },
      },
      {
        ...common,
        name: `rollout, ${kind}`,
        kind: 'rollout',
        settings: {
          ...model,
          ...group,
          ...{ prompt: small ? 16 : 64, tokens: small ? 16 : 128, at_once: group.groups * group.group_size },
          ...{ frozen: false, quantised: false, stop_ids: 0, peer: 'by hand' },
        },
      },
    ];
  });
}
