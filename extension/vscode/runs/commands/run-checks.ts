// Preconditions of the commands on runs, with the messages for the user.
import * as vscode from 'vscode';
import type { RunSummary } from '../../../protocol/page-state';
import { UserError } from '../../../common/user-error';
import { isEvaluation } from '../../../run-data/run-progress';
import { notifyInformation } from '../../notifications';
import type { Run } from '../run-store';

/** Accepts every run, for commands without a restriction. */
export const anyRun = (): boolean => true;

/** Accepts the runs that this product trains. */
export const ownRun = ({ trainer }: Pick<RunSummary, 'trainer'>): boolean => trainer === undefined;

/** Returns the message of a command that finds no run. */
export const noRuns = (): string =>
  vscode.l10n.t('There is no run in this workspace yet: start one with RAGEN: Start Run.');

/**
 * Whether a run is an evaluation, which has no steps, or belongs to another trainer. If so, also notifies the user that
 * the command does not apply.
 */
export function takesNoSteps({ summary: { name, status, trainer } }: Run): boolean {
  if (trainer) {
    const owner = vscode.l10n.t(
      'Run {0} belongs to {1}; RAGEN Workbench shows it, but cannot train it.',
      name,
      trainer.name,
    );
    void notifyInformation(owner);
    return true;
  }
  if (!isEvaluation(status)) return false;
  const refusal = vscode.l10n.t('Run {0} is an evaluation: it takes no steps and has no checkpoints.', name);
  void notifyInformation(refusal);
  return true;
}

/**
 * Reads a run's files again and, if the run is active, throws a UserError. `refusal` builds the error's message from
 * the run's name.
 */
export async function refuseLive({ reader, summary }: Run, refusal: (name: string) => string): Promise<void> {
  await reader.refresh();
  if (reader.summary?.live) throw new UserError(refusal(summary.name));
}
