// Finds the folder of the model that a command names. The name is that of a folder, of a bundled model or of a hub
// model. A hub model is downloaded while a progress bar is shown.
import { SingleBar, Presets } from 'cli-progress';
import { modelSource } from '../../trainer/config/model-path';
import { installation } from '../../node/installation';
import { fetchHubModel, findHubModel } from '../../hub/hub-model';
import type { HubProgress } from '../../hub/hub-model';

/**
 * Returns the absolute path of the model's folder. `asked` is the option or configuration key whose value is `model`,
 * for error messages. During a download, standard error shows a progress bar or, without a TTY, one line. Throws a
 * UserError if the model does not exist or cannot be fetched.
 */
export async function modelFolder(
  model: string,
  workspace: string,
  asked?: string,
  out: NodeJS.WriteStream = process.stderr,
): Promise<string> {
  const source = modelSource(model, { workspace, modelFolders: [installation.models], asked });
  if ('folder' in source) return source.folder;
  const { folder, files } = await findHubModel(source.hub);
  if (folder !== null) return folder;
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  out.write(`Fetching ${model} (${megabytes(total)})\n`);
  const look = { ...downloadBar, hideCursor: true, clearOnComplete: true, stream: out, barsize: 24 };
  const bar = out.isTTY ? new SingleBar(look, Presets.shades_classic) : null;
  bar?.start(total, 0, { file: '', size: megabytes(total) });
  try {
    return (await fetchHubModel(source.hub, { onProgress: progress => showDownload(bar, progress) })).folder;
  } finally {
    bar?.stop();
  }
}

/** Options of a progress bar that counts bytes. */
export const downloadBar = { format: '{bar} {percentage} % of {size} · {file} · {eta_formatted} left', etaBuffer: 50 };

export function showDownload(bar: SingleBar | null | undefined, { file, bytes, total }: HubProgress): void {
  bar?.setTotal(total);
  bar?.update(bytes, { file, size: megabytes(total) });
}

export const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;
