// Copies tensors to the device and back with sessions that only copy: onnxruntime-node can neither create a device
// buffer from numbers nor read one (its getData aborts the process). One small session per element type, rank and
// direction. If the device is the host, tensors are passed through.
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
   * Returns the tensor on the device, owned by the caller. Returns the argument if it is already there, or the device
   * is the host.
   */
  async upload(tensor: Tensor): Promise<Tensor> {
    if (this.options.provider !== 'webgpu' || tensor instanceof DeviceTensor) return tensor;
    return this.copy(tensor, 'upload');
  }

  /** Returns the tensor's numbers on the host. */
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
