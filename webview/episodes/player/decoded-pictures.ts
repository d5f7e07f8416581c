// Decodes the pictures of an episode for exported movies. Each picture is decoded once, however many turns show it.
import type { Episode } from '../../../extension/run-data/episode';
import type { DecodedPictures } from './frame-picture';
import { playbackFrames } from './playback';

/** Returns the pictures that the browser can decode, by their data URLs. */
export async function decodedPictures(episode: Episode): Promise<DecodedPictures> {
  const urls = new Set(playbackFrames(episode).flatMap(({ pictures }) => pictures.filter(url => url !== null)));
  const found = await Promise.all(
    Array.from(urls, async url => {
      const image = new Image();
      image.src = url;
      try {
        await image.decode();
      } catch {
        return []; // damaged: the frame shows the state's text
      }
      const { naturalWidth: width, naturalHeight: height } = image;
      return [[url, { source: image, width, height }] as const];
    }),
  );
  return new Map(found.flat());
}
