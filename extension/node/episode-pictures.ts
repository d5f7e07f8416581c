// Reads the pictures of an episode for pages, which cannot read files, and for reports. A run folder is untrusted: only
// files of the run's own folder of pictures are read, and only PNG and JPEG files within the limits of
// common/picture-type.ts are sent.
import { join } from 'node:path';
import { mediaType, mostPictureBytes, pictureType } from '../common/picture-type';
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
  let left = mostEpisodeBytes;
  const urlOf = async (name: string | null): Promise<string | null> => {
    const bytes = await acceptedPicture(runFolder, pictureFile(runFolder, episode, name));
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
  const file = isStoredPicture(name) ? join(runFolder, runFiles.pictures, name) : undefined;
  const bytes = await acceptedPicture(runFolder, file);
  return bytes ? dataUrl(bytes) : null;
}

/** Returns the paths of pictures of an episode that exist and are accepted, in order. */
export async function pictureFiles(
  runFolder: string,
  episode: Pick<Episode, 'mode' | 'step'>,
  names: readonly (string | null)[],
): Promise<string[]> {
  const files: string[] = [];
  for (const name of names) {
    const file = pictureFile(runFolder, episode, name);
    if (file !== undefined && (await acceptedPicture(runFolder, file))) files.push(file);
  }
  return files;
}

/** Returns the path that an episode means by the name of a picture; undefined if it is not the name of one. */
function pictureFile(
  runFolder: string,
  { mode, step }: Pick<Episode, 'mode' | 'step'>,
  name: string | null,
): string | undefined {
  if (name === null) return undefined;
  if (isStoredPicture(name)) return join(runFolder, runFiles.pictures, name);
  return isPictureName(name) ? join(runFolder, picturesFolder(mode, step), name) : undefined;
}

async function acceptedPicture(runFolder: string, file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  try {
    const bytes = await readBounded(file, { most: mostPictureBytes, within: runFolder });
    return pictureType(bytes) ? bytes : undefined;
  } catch {
    return undefined; // missing or refused: the text keeps its mark
  }
}

const dataUrl = (bytes: Buffer): string => `data:${mediaType(bytes)};base64,${bytes.toString('base64')}`;
