// URI of an episode's document: `ragen-trace:/<run id>/<step-000012>/<g003-m05>.ragen-trace`. The path is displayed.
// The query contains the run folder and the episode, so that the document can be restored after a window reload.
import { basename } from 'node:path';
import * as vscode from 'vscode';
import { shortId } from './trace-text';

export const traceScheme = 'ragen-trace';
export const traceLanguage = 'ragen-trace';
const ending = '.ragen-trace';

/** An episode of a run. */
export interface TraceLocation {
  /** Absolute path of the run folder. */
  folder: string;
  mode: 'train' | 'val';
  step: number;
  id: string;
}

/** Returns the document's URI. */
export function traceUri({ folder, mode, step, id }: TraceLocation): vscode.Uri {
  const file = `${mode === 'train' ? 'step' : 'val'}-${String(step).padStart(6, '0')}`;
  const path = `/${basename(folder)}/${file}/${shortId(id)}${ending}`;
  return vscode.Uri.from({
    scheme: traceScheme,
    path,
    query: JSON.stringify({ folder, mode, step, id } satisfies TraceLocation),
  });
}

/** Returns the episode that a URI identifies; undefined if the URI does not identify an episode. */
export function parseTraceUri(uri: vscode.Uri): TraceLocation | undefined {
  if (uri.scheme !== traceScheme) return undefined;
  try {
    const { folder, mode, step, id } = JSON.parse(uri.query) as TraceLocation;
    const valid =
      typeof folder === 'string' && typeof id === 'string' && Number.isInteger(step) && /^(train|val)$/.test(mode);
    return valid ? { folder, mode, step, id } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the episode of a command's argument: a document's URI, an episode from a page, or undefined. */
export function traceLocationOf(argument: unknown): TraceLocation | undefined {
  if (argument instanceof vscode.Uri) return parseTraceUri(argument);
  if (typeof argument !== 'object' || argument === null) return undefined;
  const { folder, mode, step, id } = argument as Partial<TraceLocation>;
  const named = typeof folder === 'string' && typeof id === 'string' && typeof step === 'number';
  return named && (mode === 'train' || mode === 'val') ? { folder, mode, step, id } : undefined;
}
