// Copies tensors to a device and back. The copies are made by sessions that only copy. onnxruntime-node itself can
// neither create a device buffer from numbers nor read a device buffer: getData aborts the process. Uses one session
// per element type, rank and direction. If the device is the host, returns tensors unchanged.
import { DeviceTensor } from './device-tensor';
import type { Tensor } from './device-tensor';
import { Graph } from '../graph/graph';
import { Session } from './session';
import type { SessionOptions } from './session';

type Direction = 'upload' | 'download';

export class Transfer {
  private readonly sessions = new Map<string, Promise<Session>>();

  constructor(private readonly options: SessionOptions) {}

  /**
   * Returns the tensor on the device; the caller owns it. If the argument is on the device, or the device is the host,
   * returns the argument.
   */
  async upload(tensor: Tensor): Promise<Tensor> {
    if (this.options.provider !== 'webgpu' || tensor instanceof DeviceTensor) return tensor;
    return this.copy(tensor, 'upload');
  }

  /** Returns a tensor with the same numbers in host memory. */
  async download(tensor: Tensor): Promise<Tensor> {
    return tensor instanceof DeviceTensor ? this.copy(tensor, 'download') : tensor;
  }

  async release(): Promise<void> {
    const sessions = await Promise.all(this.sessions.values());
    this.sessions.clear();
    await Promise.all(sessions.map(session => session.release()));
  }

  private async copy(tensor: Tensor, direction: Direction): Promise<Tensor> {
    const key = [direction, tensor.type, tensor.dims.length].join();
    let session = this.sessions.get(key);
    if (!session) {
      const g = new Graph(direction, 'webgpu');
      const dims = tensor.dims.map((_, axis) => `d${axis}`);
      g.output('to', g.input('from', tensor.type, dims));
      session = Session.create(g, { ...this.options, resident: () => direction === 'upload' });
      this.sessions.set(key, session);
    }
    return (await (await session).run({ from: tensor })).to;
  }
}
