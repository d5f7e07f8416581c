// The folder of a model that a command names: a folder, a model that comes along, or one of the hub, which is fetched with a bar.
import { SingleBar, Presets } from 'cli-progress';
import { modelSource } from '../config/model-path';
import { installation } from '../installation';
import { fetchHubModel, findHubModel } from '../store/hub-model';
import type { HubProgress } from '../store/hub-model';

/**
 * Absolute path of the model's folder; `asked` names, in errors, what gave `model` (default: the configuration's key). Standard error shows the fetching: a bar on a terminal, else a line. Throws a UserError where
 * there is no such model, or none can be had.
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

/** How a bar of bytes looks. */
export const downloadBar = { format: '{bar} {percentage} % of {size} · {file} · {eta_formatted} left', etaBuffer: 50 };

export function showDownload(bar: SingleBar | null | undefined, { file, bytes, total }: HubProgress): void {
  bar?.setTotal(total);
  bar?.update(bytes, { file, size: megabytes(total) });
}

export const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1e6)} MB`;
