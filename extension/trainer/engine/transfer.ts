// Brings tensors onto the device and back, by sessions that only copy: onnxruntime-node can neither make a device's buffer from numbers
// nor read one (its getData ends the process). One small session for each element type, rank and direction. Where the device is the
// host, a tensor is handed through as it is.
import { DeviceTensor } from './device-tensor';
import type { Tensor } from './device-tensor';
import { Graph } from './graph';
import { Session } from './session';
import type { SessionOptions } from './session';

type Direction = 'upload' | 'download';

export class Transfer {
  private readonly sessions = new Map<string, Promise<Session>>();

  constructor(private readonly options: SessionOptions) {}

  /** The tensor on the device, for the caller to dispose of; the tensor itself where it is there, or the device is the host. */
  async upload(tensor: Tensor): Promise<Tensor> {
    if (this.options.provider !== 'webgpu' || tensor instanceof DeviceTensor) return tensor;
    return this.copy(tensor, 'upload');
  }

  /** The numbers of a tensor of either kind. */
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
