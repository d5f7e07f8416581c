// Services of the commands on reasoning traces, and the selection of the episode on which a command acts. The command's
// argument (from a page, a document's URI or a tree node) identifies this episode. Without an argument, the command
// acts on the episode in the active editor.
import * as vscode from 'vscode';
import { UserError } from '../../../common/user-error';
import type { CliInvocation } from '../../processes/cli-command';
import type { RunPicker } from '../../runs/run-picker';
import type { RunTrust } from '../../runs/run-trust-dialog';
import type { OpenTrace, TraceDocuments } from '../trace-documents';
import type { TraceOverlay } from '../trace-overlay';
import type { TraceScores } from '../trace-scores';
import { parseTraceUri, traceLocationOf, traceUri } from '../trace-uri';

/** Services that the commands use. */
export interface TraceServices {
  documents: TraceDocuments;
  overlay: TraceOverlay;
  scores: TraceScores;
  picker: RunPicker;
  trust: RunTrust;
  /** Returns the CLI for a workspace folder. */
  cliFor(cwd: string): Promise<CliInvocation>;
}

/** A command on an episode. */
export type TraceCommand = (services: TraceServices, argument: unknown, other?: unknown) => Promise<void>;

/**
 * Returns the episode on which a command acts. Throws a UserError if neither the argument nor the active editor
 * identifies an episode.
 */
export async function currentTrace({ documents }: TraceServices, argument: unknown): Promise<OpenTrace> {
  const location = traceLocationOf(argument);
  const uri = location ? traceUri(location) : vscode.window.activeTextEditor?.document.uri;
  if (!uri || !parseTraceUri(uri))
    throw new UserError(vscode.l10n.t('No reasoning trace is open: open one with RAGEN: Open Reasoning Trace.'));
  return documents.open(uri);
}
