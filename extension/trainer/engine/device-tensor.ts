// Tensors as sessions take and give them: numbers in the host's memory, or a buffer on a device. A device's tensor may stand wherever a
// tensor is asked for, only its numbers are not at hand: transfer.ts brings them. Whoever holds one disposes of it; nothing else does.
import type { Tensor as OrtTensor } from 'onnxruntime-common';
import type { ElementType } from './graph';

/** float16 travels as Uint16Array. */
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

  /** @throws always: onnxruntime-node ends the process when it is asked for a device's numbers. */
  get data(): never {
    throw new Error(`tensor [${this.dims.join(', ')}]: its numbers are on the device, download them first`);
  }

  /** The onnxruntime tensor, to be fed. */
  get handle(): OrtTensor {
    if (this.disposed) throw new Error(`tensor [${this.dims.join(', ')}]: was fed after it was disposed of`);
    return this.buffer;
  }

  /** Frees the buffer; a second call does nothing. */
  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.buffer.dispose();
  }
}

/** Frees tensors that lie on a device; those on the host need nothing. */
export function dispose(tensors: Iterable<Tensor>): void {
  for (const tensor of tensors) if (tensor instanceof DeviceTensor) tensor.dispose();
}
