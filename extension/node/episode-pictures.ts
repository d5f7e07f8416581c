// Reads the pictures of an episode for pages, which cannot read files, and for reports. A run folder is untrusted: only
// files of the run's own folder of pictures are read, and only PNG and JPEG files within the limits of
// common/picture-type.ts are sent.
import { join } from 'node:path';
import { mostPictureBytes, pictureType } from '../common/picture-type';
import { readBounded } from './bounded-file';
import type { Episode } from '../run-data/episode';
import { isPictureName, isStoredPicture, picturesFolder, runFiles } from '../run-data/run-file-names';

/** Maximum bytes of the pictures of one episode; the rest is not shown. */
const mostEpisodeBytes = 64 * 2 ** 20;

/**
 * Returns a copy of the episode with data URLs in place of the names of its pictures, null for a picture that is missing
 * or refused. An episode without pictures is returned unchanged.
 */
export async function withPictures(runFolder: string, episode: Episode): Promise<Episode> {
  const { turns, final_pictures } = episode;
  if (!final_pictures && !turns.some(({ pictures }) => pictures)) return episode;
  const folder = picturesFolder(episode.mode, episode.step);
  let left = mostEpisodeBytes;
  const urlOf = async (name: string | null): Promise<string | null> => {
    const bytes = name === null ? undefined : await pictureIn(runFolder, folder, name);
    if (!bytes || bytes.length > left) return null;
    left -= bytes.length;
    return dataUrl(bytes);
  };
  const urlsOf = async (names: readonly (string | null)[]): Promise<(string | null)[]> => {
    const urls: (string | null)[] = [];
    for (const name of names) urls.push(await urlOf(name));
    return urls;
  };
  const shown: Episode['turns'] = [];
  for (const turn of turns) shown.push(turn.pictures ? { ...turn, pictures: await urlsOf(turn.pictures) } : turn);
  return { ...episode, turns: shown, ...(final_pictures && { final_pictures: await urlsOf(final_pictures) }) };
}

/**
 * Returns the data URL of a picture of the run's own episodes; null if it is missing or refused.
 * @param name name in the folder of pictures
 */
export async function storedPictureUrl(runFolder: string, name: string): Promise<string | null> {
  const bytes = isStoredPicture(name) ? await pictureIn(runFolder, runFiles.pictures, name) : undefined;
  return bytes ? dataUrl(bytes) : null;
}

/** Returns the paths of pictures of an episode that exist and are accepted, in order. */
export async function pictureFiles(
  runFolder: string,
  { mode, step }: Pick<Episode, 'mode' | 'step'>,
  names: readonly (string | null)[],
): Promise<string[]> {
  const files: string[] = [];
  for (const name of names) {
    if (name === null || !(await pictureIn(runFolder, picturesFolder(mode, step), name))) continue;
    files.push(join(runFolder, isStoredPicture(name) ? runFiles.pictures : picturesFolder(mode, step), name));
  }
  return files;
}

async function pictureIn(runFolder: string, folder: string, name: string): Promise<Buffer | undefined> {
  const inside = isStoredPicture(name) ? runFiles.pictures : folder;
  if (!isStoredPicture(name) && !isPictureName(name)) return undefined;
  try {
    const bytes = await readBounded(join(runFolder, inside, name), { most: mostPictureBytes, within: runFolder });
    return pictureType(bytes) ? bytes : undefined;
  } catch {
    return undefined; // missing or refused: the text keeps its mark
  }
}

const dataUrl = (bytes: Buffer): string =>
  `data:image/${pictureType(bytes)?.type === 'png' ? 'png' : 'jpeg'};base64,${bytes.toString('base64')}`;
