// What-if command: the user selects a turn of an episode, a change in this turn, and the player of the remaining turns
// (a checkpoint or the user). The result is shown beside the original episode. The inspection process runs the episode.
// If the user is the player, a document shows the turns so far, and a dialog requests each answer. The dialogs end when
// the episode ends or the user lets a checkpoint play the rest.
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import * as vscode from 'vscode';
import { formatSigned } from '../../../common/numbers';
import { UserError } from '../../../common/user-error';
import type { EpisodeRef, WhatIfState } from '../../../protocol/inspection';
import { episodeFile } from '../../../run-data/run-file-names';
import { type Episode } from '../../../run-data/episode';
import { registerActions } from '../../command';
import type { Host } from '../../host-services';
import { notifyInformation, withProgress } from '../../notifications';
import type { Inspections, RequestOptions } from '../../processes/inspection-process';
import { EpisodeHeads } from '../../run-files/episodes/episode-heads';
import type { RunStore } from '../../runs/run-store';
import type { RunTrust } from '../../runs/run-trust-dialog';
import { shortId } from '../trace-text';
import { parseTraceUri, traceLocationOf, traceUri } from '../trace-uri';
import { askForChange, askForMove, askForPlayer, askForTurn } from './what-if-dialogs';
import { WhatIfDocuments } from './what-if-documents';

/** Exclusive upper bound of seeds. */
const seeds = 2 ** 31;
/** The progress notification shows at most this many of the last sampled characters. */
const shownText = 60;

type WhatIfTarget = EpisodeRef & { turn: number; accepted: string[] };

export function registerWhatIf(context: vscode.ExtensionContext, host: Host): void {
  const whatIfs = new WhatIfs(host.inspections, host.trust, host.store);
  const command = registerActions(host, { 'ragen.whatIf': argument => whatIfs.ask(argument) });
  context.subscriptions.push(whatIfs, command);
}

class WhatIfs implements vscode.Disposable {
  private readonly heads = new EpisodeHeads();
  private readonly documents = new WhatIfDocuments();

  constructor(
    private readonly inspections: Inspections,
    private readonly trust: RunTrust,
    private readonly store: RunStore,
  ) {}

  dispose(): void {
    this.documents.dispose();
  }

  /**
   * Runs the command for the episode and turn in `argument` or, without an argument, for the trace in the active
   * editor.
   */
  async ask(argument: unknown): Promise<void> {
    const location = traceLocationOf(argument) ?? locationInEditor();
    if (!location)
      throw new UserError(vscode.l10n.t('No reasoning trace is open: open one with RAGEN: Open Reasoning Trace.'));
    const origin = await this.heads.episode(join(location.folder, episodeFile(location)), location.id);
    if (!origin) throw new UserError(vscode.l10n.t('Episode {0} is no longer in its run folder.', location.id));
    const turn = turnOf(argument) ?? (await askForTurn(origin));
    if (turn === undefined) return;
    if (!(await this.store.find(location.folder)))
      throw new UserError(vscode.l10n.t('{0} is not a run in this workspace.', location.folder));
    const trusted = await this.trust.ask(location.folder, { version: origin.environment.version, tag: origin.tag });
    if (!trusted) return;
    const target = { ...location, turn, accepted: trusted.accepted };
    const given = await askForChange(target, origin.turns[turn - 1], () => this.actionsOf(target));
    if (!given) return;
    const checkpoint = await this.chosenPlayer(target, vscode.l10n.t('Continue from turn {0} with…', turn));
    if (checkpoint === undefined) return;
    const whatIfState = await this.run(target, options =>
      this.inspections.whatIf({ ...target, given, checkpoint, seed: randomInt(seeds) }, options),
    );
    const over = whatIfState && !whatIfState.written ? await this.byHand(target, whatIfState) : whatIfState;
    if (over?.written) await report(target, origin, over);
  }

  private actionsOf(target: WhatIfTarget): Promise<string[] | undefined> {
    const { folder, mode, step, id, accepted } = target;
    return this.run(target, options => this.inspections.legalActions({ folder, mode, step, id, accepted }, options));
  }

  private async chosenPlayer({ folder, step }: WhatIfTarget, title: string): Promise<string | null | undefined> {
    return askForPlayer(await this.inspections.checkpoints(folder), step, title);
  }

  /** Runs `work` with a cancellable progress notification. Returns undefined if the user cancelled. */
  private async run<T>(target: WhatIfTarget, work: (options: RequestOptions) => Promise<T>): Promise<T | undefined> {
    const controller = new AbortController();
    const title = vscode.l10n.t('What if… turn {0} of {1}', target.turn, shortId(target.id));
    try {
      return await withProgress(
        { location: vscode.ProgressLocation.Notification, title, cancellable: true },
        async (progress, token) => {
          token.onCancellationRequested(() => controller.abort());
          let [turn, text] = [0, ''];
          return work({
            signal: controller.signal,
            onPhase: phase => progress.report(phase),
            onTokens: update => {
              if (update.turn !== turn) [turn, text] = [update.turn, ''];
              text += update.tokens.map(token => token.text).join('');
              const tail = text.replace(/\s+/g, ' ').slice(-shownText);
              progress.report(vscode.l10n.t('turn {0}: {1}', turn, tail));
            },
          });
        },
      );
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    }
  }

  /** Shows a dialog for each turn until the episode is over. Returns undefined if the user discarded the episode. */
  private async byHand(target: WhatIfTarget, first: WhatIfState): Promise<WhatIfState | undefined> {
    const uri = this.documents.show(target, first);
    const editor = await vscode.window.showTextDocument(uri, {
      viewColumn: vscode.ViewColumn.Beside,
      preserveFocus: true,
    });
    const { session } = first;
    const { folder } = target;
    let whatIfState: WhatIfState | undefined = first;
    try {
      while (whatIfState && !whatIfState.written) {
        const bottom = new vscode.Position(editor.document.lineCount, 0);
        editor.revealRange(new vscode.Range(bottom, bottom));
        const move = await askForMove(whatIfState);
        if (move === 'keep' || move === undefined)
          return (await this.inspections.whatIfEnd(folder, { session, keep: move === 'keep' })) ?? undefined;
        const checkpoint = move === 'policy' ? await this.chosenPlayer(target, vscode.l10n.t('Continue with…')) : null;
        if (checkpoint === undefined) continue;
        const given = move === 'policy' ? {} : move;
        if (checkpoint === null && move === 'policy') continue; // the user continues to play
        whatIfState = await this.run(target, options =>
          this.inspections.whatIfTurn(folder, { session, given, checkpoint }, options),
        );
        if (whatIfState) this.documents.show(target, whatIfState);
      }
      return whatIfState;
    } finally {
      await this.documents.close(uri);
    }
  }
}

/** Opens the new trace beside the original and shows both results. */
async function report(target: WhatIfTarget, origin: Episode, { written, episode, notes }: WhatIfState): Promise<void> {
  const [before, after] = [traceUri(target), traceUri(written!)];
  await vscode.window.showTextDocument(before, { preview: false, preserveFocus: true });
  await vscode.window.showTextDocument(after, { viewColumn: vscode.ViewColumn.Beside, preview: false });
  const ends = (each: Episode) => (each.success ? vscode.l10n.t('solved') : vscode.l10n.t('not solved'));
  const turns = ({ turns: { length } }: Episode) =>
    length === 1 ? vscode.l10n.t('1 turn') : vscode.l10n.t('{0} turns', length);
  const message = vscode.l10n.t(
    'What if: return {0}, {1}, {2}. Original: return {3}, {4}, {5}.',
    ...[formatSigned(episode.reward), ends(episode), turns(episode)],
    ...[formatSigned(origin.reward), ends(origin), turns(origin)],
  );
  const compare = vscode.l10n.t('Compare');
  const choice = await notifyInformation([message, ...notes].join(' '), compare);
  if (choice === compare) await vscode.commands.executeCommand('ragen.compareEpisodes', target, written);
}

function locationInEditor(): EpisodeRef | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && parseTraceUri(uri);
}

function turnOf(argument: unknown): number | undefined {
  const turn = typeof argument === 'object' && argument !== null && 'turn' in argument ? argument.turn : undefined;
  return typeof turn === 'number' ? turn : undefined;
}
