// Exports an episode's playback as a picture that moves: a GIF, encoded at once, or a WebM video, recorded in real time
// by the browser's MediaRecorder.
import type { EpisodeMovie } from '../../../extension/protocol/episodes-page';
import type { Episode } from '../../../extension/run-data/episode';
import type { Theme } from '../../shared/theme';
import { decodedPictures } from './decoded-pictures';
import { framePainter, movieSize } from './frame-picture';
import { encodeGif } from './gif';
import { frameMs } from './playback';

export interface MovieOptions {
  readonly speed: number;
  /** Whether the GIF repeats forever. */
  readonly loop: boolean;
}

const webm = 'video/webm';

/** Returns the episode as a GIF. Equal episodes, themes and options give equal bytes on a machine. */
export async function gifMovie(episode: Episode, theme: Theme, { speed, loop }: MovieOptions): Promise<EpisodeMovie> {
  const { width, height } = movieSize;
  const paint = framePainter(episode, theme, await decodedPictures(episode));
  const frames = episode.turns.length + 1;
  const context = movieCanvas().getContext('2d', { willReadFrequently: true })!;
  const bytes = encodeGif({
    ...{ width, height, frames, loop },
    paint(frame) {
      paint(context, frame);
      return context.getImageData(0, 0, width, height).data;
    },
    delayMs: frame => frameMs(frame, frames, speed),
  });
  return { kind: 'movie', name: episode.id, format: 'gif', bytes };
}

/**
 * Records the episode as a WebM video, which takes as long as the playback. `onFrame` is called with the index of each
 * frame. Returns null if `signal` aborts the recording. Throws if this window's browser engine cannot record.
 */
export async function webmMovie(
  episode: Episode,
  theme: Theme,
  { speed }: MovieOptions,
  onFrame: (frame: number) => void,
  signal: AbortSignal,
): Promise<EpisodeMovie | null> {
  const canvas = movieCanvas();
  if (typeof MediaRecorder === 'undefined' || !MediaRecorder.isTypeSupported(webm) || !('captureStream' in canvas))
    throw new Error('This window cannot record WebM, because its browser engine has no MediaRecorder: export a GIF.');
  const context = canvas.getContext('2d')!;
  const paint = framePainter(episode, theme, await decodedPictures(episode));
  const frames = episode.turns.length + 1;
  paint(context, 0); // the stream starts with a picture of the right size
  const stream = canvas.captureStream(0);
  const track = stream.getVideoTracks()[0] as CanvasCaptureMediaStreamTrack;
  const recorder = new MediaRecorder(stream, { mimeType: webm, videoBitsPerSecond: 4_000_000 });
  const parts: Blob[] = [];
  recorder.ondataavailable = ({ data }) => void parts.push(data);
  const stopped = new Promise<void>((resolve, reject) => {
    recorder.onstop = () => resolve();
    recorder.onerror = () => reject(new Error('The browser engine failed to record the WebM video: export a GIF.'));
  });
  recorder.start();
  try {
    for (let frame = 0; frame < frames && !signal.aborted; frame++) {
      onFrame(frame);
      paint(context, frame);
      track.requestFrame();
      await delay(frameMs(frame, frames, speed), signal);
    }
    track.requestFrame(); // gives the last frame its duration
  } finally {
    recorder.stop();
    await stopped;
    track.stop();
  }
  if (signal.aborted) return null;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return { kind: 'movie', name: episode.id, format: 'webm', bytes };
}

function movieCanvas(): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, movieSize);
  return canvas;
}

/** Resolves after `ms` milliseconds, or when `signal` aborts. */
const delay = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
