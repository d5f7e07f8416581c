// The address of an episode’s document: `ragen-trace:/<run’s id>/<step-000012>/<g003-m05>.ragen-trace`, whose query names the run’s folder
// and the episode, so that the document can be found again from its address alone after a reload of the window. The path is for readers.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { shortId } from './trace';

export const traceScheme = 'ragen-trace';
export const traceLanguage = 'ragen-trace';
const ending = '.ragen-trace';

/** An episode of a run. */
export interface TracePlace {
  /** Absolute path of the run's folder. */
  folder: string;
  mode: 'train' | 'val';
  step: number;
  id: string;
}

/** The document's address. */
export function traceUri({ folder, mode, step, id }: TracePlace): vscode.Uri {
  const file = `${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}`;
  const path = `/${basename(folder)}/${file}/${shortId(id)}${ending}`;
  return vscode.Uri.from({ scheme: traceScheme, path, query: JSON.stringify({ folder, mode, step, id } satisfies TracePlace) }); // prettier-ignore
}

/** The episode of an address; undefined where it is none. */
export function tracePlace(uri: vscode.Uri): TracePlace | undefined {
  if (uri.scheme !== traceScheme) return undefined;
  try {
    const { folder, mode, step, id } = JSON.parse(uri.query) as TracePlace;
    const valid = typeof folder === 'string' && typeof id === 'string' && Number.isInteger(step) && /^(train|val)$/.test(mode); // prettier-ignore
    return valid ? { folder, mode, step, id } : undefined;
  } catch {
    return undefined;
  }
}

/** What commands are given: the document's own address, an episode that a page names, or nothing. */
export function placeOf(argument: unknown): TracePlace | undefined {
  if (argument instanceof vscode.Uri) return tracePlace(argument);
  if (typeof argument !== 'object' || argument === null) return undefined;
  const { folder, mode, step, id } = argument as Partial<TracePlace>;
  const named = typeof folder === 'string' && typeof id === 'string' && typeof step === 'number';
  return named && (mode === 'train' || mode === 'val') ? { folder, mode, step, id } : undefined;
}
