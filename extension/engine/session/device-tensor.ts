// Tensors that are inputs and outputs of sessions. Their numbers are in host memory, or in a buffer on a device. A
// device tensor can be fed like a host tensor, but its numbers can be read only after a download (transfer.ts). The
// owner must dispose of it explicitly.
import type { Tensor as OrtTensor } from 'onnxruntime-common';
import type { ElementType } from '../graph/graph';

/** Numbers of a host tensor; float16 as bit patterns in a Uint16Array. */
export type TensorData = Float32Array | BigInt64Array | Int32Array | Uint16Array | Uint8Array | Int8Array;

export interface Tensor {
  readonly type: ElementType;
  readonly dims: readonly number[];
  readonly data: TensorData;
}

export class DeviceTensor implements Tensor {
  private disposed = false;

  constructor(
    readonly type: ElementType,
    private readonly buffer: OrtTensor,
  ) {}

  get dims(): readonly number[] {
    return this.buffer.dims;
  }

  /** @throws always: onnxruntime-node aborts the process when a device tensor's data is accessed. */
  get data(): never {
    throw new Error(`tensor [${this.dims.join(', ')}]: its numbers are on the device: download them first`);
  }

  /** The onnxruntime tensor to feed to a session. Throws after disposal. */
  get handle(): OrtTensor {
    if (this.disposed)
      throw new Error(`tensor [${this.dims.join(', ')}]: the tensor is already disposed and cannot be fed`);
    return this.buffer;
  }

  /** Frees the buffer; idempotent. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.buffer.dispose();
  }
}

/** Frees tensors on a device; ignores tensors on the host. */
export function dispose(tensors: Iterable<Tensor>): void {
  for (const tensor of tensors) if (tensor instanceof DeviceTensor) tensor.dispose();
}
