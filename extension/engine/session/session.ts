// One onnxruntime session for one graph. Inputs and outputs are tensors by name. No other file uses onnxruntime's API.
// Telemetry is disabled before the module loads. Idle threads spin for `spinMicroseconds`, about the time between two
// operators, and then sleep. Without spinning, small models lose a third of their speed because threads must be woken.
// With onnxruntime's default spin time, two sessions compete for the cores, and throughput on a shared machine falls
// from 21k to 3k tokens/s.
import type * as Ort from 'onnxruntime-node';
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-common';
import { DeviceTensor } from './device-tensor';
import type { Tensor, TensorData } from './device-tensor';
import type { Graph, Lowering } from '../graph/graph';
import { writeOnnx } from '../graph/onnx-writer';

export type { Tensor } from './device-tensor';

export const float32 = (data: Float32Array, dims: readonly number[]): Tensor => ({ type: 'float32', dims, data });
export const int32 = (data: Int32Array, dims: readonly number[]): Tensor => ({ type: 'int32', dims, data });
export const int64 = (data: BigInt64Array, dims: readonly number[]): Tensor => ({ type: 'int64', dims, data });

/** onnxruntime execution provider that runs a graph. */
export type Provider = 'cpu' | 'webgpu' | 'cuda';

/** Time that an idle thread spins before it sleeps, in microseconds. */
const spinMicroseconds = 20;

export interface SessionOptions {
  /** Defaults to `cpu`. */
  provider?: Provider;
  /** Threads within an operator; 0 lets onnxruntime use all cores. */
  threads: number;
  /** Folder of the files that contain the graph's mapped constants. */
  folder?: string;
  /**
   * Whether constants are folded, and prepacked for matmuls, when the session is created. This takes time and the
   * memory of a second copy, but speeds up matmuls with few rows. Used for generation.
   */
  prepack?: boolean;
  /**
   * Whether the output with the given name stays on the device; a run returns it as a `DeviceTensor`. Supported only by
   * WebGPU.
   */
  resident?: (output: string) => boolean;
}

/** Returns the set of kernels for the provider in the options. */
export const loweringOf = ({ provider = 'cpu' }: SessionOptions): Lowering => provider;

type Runtime = typeof Ort;
let runtime: Promise<Runtime> | undefined;

/** Returns the onnxruntime module, loaded once. */
export function loadRuntime(): Promise<Runtime> {
  process.env.ORT_DISABLE_TELEMETRY = '1';
  runtime ??= import('onnxruntime-node').then(module => {
    module.env.logLevel = 'error';
    return module;
  });
  return runtime;
}

export class Session {
  private constructor(
    private readonly ort: Runtime,
    private readonly session: InferenceSession,
    readonly graph: Graph,
  ) {}

  static async create(graph: Graph, options: SessionOptions): Promise<Session> {
    const ort = await loadRuntime();
    const session = await ort.InferenceSession.create(writeOnnx(graph), sessionSettings(graph, options));
    return new Session(ort, session, graph);
  }

  /** Runs the graph; every graph input must be fed. Outputs are newly allocated, and the caller owns them. */
  async run(feeds: Readonly<Record<string, Tensor>>): Promise<Record<string, Tensor>> {
    const inputs: Record<string, OrtTensor> = {};
    for (const { name } of this.graph.inputs) {
      const feed = feeds[name];
      if (!feed) throw new Error(`session ${this.graph.name}: input ${name} was not fed`);
      inputs[name] = this.tensor(feed);
    }
    const outputs = await this.session.run(inputs);
    const result: Record<string, Tensor> = {};
    for (const { name, type } of this.graph.outputs) {
      const output = outputs[this.graph.sources.get(name)!];
      result[name] =
        output.location === 'cpu'
          ? { type, dims: output.dims, data: output.data as TensorData }
          : new DeviceTensor(type, output);
    }
    return result;
  }

  async release(): Promise<void> {
    await this.session.release();
  }

  private tensor(tensor: Tensor): OrtTensor {
    if (tensor instanceof DeviceTensor) return tensor.handle;
    const { type, data, dims } = tensor;
    return new this.ort.Tensor(type as 'float32', data as Float32Array, dims);
  }
}

/** Returns onnxruntime's options for a session of the graph. */
export function sessionSettings(graph: Graph, options: SessionOptions): InferenceSession.SessionOptions {
  const { provider = 'cpu', prepack = false, resident, folder, threads } = options;
  const kept = provider === 'webgpu' && resident ? graph.outputs.filter(({ name }) => resident(name)) : [];
  // Constant folding would keep two copies of mapped weights in memory, and onnxruntime's other optimizations do not
  // speed up these graphs. On WebGPU, constants are folded nevertheless. WebGPU has no bfloat16 kernels, so folding
  // converts the weights to float32 once, and the converted weights stay on the device.
  const folded = prepack || graph.mapped.length === 0 || provider === 'webgpu';
  return {
    executionProviders: [provider],
    ...(kept.length > 0 && {
      preferredOutputLocation: Object.fromEntries(kept.map(({ name }) => [graph.sources.get(name)!, 'gpu-buffer'])),
    }),
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    graphOptimizationLevel: folded ? 'all' : 'disabled',
    enableMemPattern: false,
    logId: graph.name,
    logSeverityLevel: provider === 'cuda' ? 2 : 3, // warnings list nodes without a CUDA kernel
    extra: {
      session: {
        intra_op: { allow_spinning: '1', spin_duration_us: String(spinMicroseconds) },
        force_spinning_stop: '1',
        disable_prepacking: prepack ? '0' : '1',
        ...(folder && { model_external_initializers_file_folder_path: folder }),
      },
    },
  };
}
