// How a channel reports that its other end is gone, whichever way the operating system says so first.
import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { FrameChannel } from '../../../extension/node/frame-channel';

/** Opens a channel over a pipe, and returns the reasons that it reports. */
function opened(): { pipe: Duplex; reasons: string[] } {
  const pipe = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const reasons: string[] = [];
  new FrameChannel(pipe, { message: () => undefined, broken: why => void reasons.push(why) });
  return { pipe, reasons };
}

test.each(['EPIPE', 'ECONNRESET'])('a write that fails with %s is reported as a closed channel', async code => {
  const { pipe, reasons } = opened();
  pipe.destroy(Object.assign(new Error(`write ${code}`), { code }));
  await expect.poll(() => reasons).toEqual(['closed its channel']);
});

test('the end of the input is reported as a closed channel, once', async () => {
  const { pipe, reasons } = opened();
  pipe.push(null);
  pipe.resume();
  await expect.poll(() => reasons).toEqual(['closed its channel']);
});

test('another failure of the pipe is reported with its reason', async () => {
  const { pipe, reasons } = opened();
  pipe.destroy(Object.assign(new Error('read EIO'), { code: 'EIO' }));
  await expect.poll(() => reasons).toEqual(['has a channel that failed (read EIO)']);
});
