// Scores of an episode's tokens under a checkpoint. They are requested from the inspection process when they are first
// needed; the status bar shows the progress of the request. They are cached by episode and checkpoint. A failure is
// cached and logged. It is shown as an error only if the user has chosen the overlay; if a stored overlay caused the
// request, no error is shown.
import * as vscode from 'vscode';
import type { CheckpointChoice, Rescored, RescoreRequest } from '../../protocol/inspection';
import { withProgress } from '../notifications';
import { showQuickPick } from '../questions';
import type { TraceLocation } from './trace-uri';

/** The function of the inspection process that scores tokens. */
export interface Scorer {
  /** `onPhase` receives the name of the current phase of a long request. */
  rescore(request: RescoreRequest, options: { onPhase(message: string): void }): Promise<Rescored>;
  checkpoints(folder: string): Promise<CheckpointChoice[]>;
}

/** Number of episodes whose scores are cached. */
const remembered = 32;

export class TraceScores implements vscode.Disposable {
  private readonly scores = new Map<string, Rescored | 'pending' | { failed: string }>();
  /** Keys of scores that the user requested; failures of these requests are shown. */
  private readonly requested = new Set<string>();
  /** Chosen checkpoints by run folder. Runs without an entry use the newest checkpoint. */
  private readonly chosen = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<void>();
  /** Fires when scores arrived or another checkpoint was chosen. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly scorer: Scorer | undefined,
    private readonly listener: { onError(error: unknown): void; log(message: string): void },
  ) {}

  /** Returns the cached scores; requests nothing. */
  known(location: TraceLocation): Rescored | undefined {
    const scores = this.scores.get(this.key(location));
    return typeof scores === 'object' && 'tokens' in scores ? scores : undefined;
  }

  /** Returns why the last attempt to score an episode failed. */
  failure(location: TraceLocation): string | undefined {
    const scores = this.scores.get(this.key(location));
    return typeof scores === 'object' && 'failed' in scores ? scores.failed : undefined;
  }

  /**
   * Requests an episode's scores unless they are known or already being requested. After a failure, only a request by
   * the user (`requested`) tries again; if this request fails too, the user sees the error.
   */
  request(location: TraceLocation, why: 'shown' | 'requested'): void {
    if (!this.scorer) return;
    const key = this.key(location);
    if (this.known(location)) return;
    if (why === 'requested') this.requested.add(key);
    const isPending = this.scores.get(key) === 'pending';
    if (isPending || (this.failure(location) !== undefined && why === 'shown')) return;
    this.scores.set(key, 'pending');
    for (const old of [...this.scores.keys()].slice(0, -remembered)) this.scores.delete(old);
    const checkpoint = this.chosen.get(location.folder);
    const title = vscode.l10n.t(
      'Scoring {0} with {1}',
      location.id,
      checkpoint ?? vscode.l10n.t('the newest checkpoint'),
    );
    const { scorer } = this;
    const scoring = withProgress({ location: vscode.ProgressLocation.Window, title }, progress =>
      scorer.rescore({ ...location, checkpoint }, { onPhase: message => progress.report(message) }),
    );
    void scoring.then(
      scores => {
        this.scores.set(key, scores);
        this.requested.delete(key);
        this.changed.fire();
      },
      (error: unknown) => {
        const message = error instanceof Error ? error.message : String(error);
        this.scores.set(key, { failed: message });
        this.changed.fire();
        if (this.requested.delete(key)) this.listener.onError(error);
        else this.listener.log(message);
      },
    );
  }

  /** Lets the user choose the checkpoint that scores a run's episodes. */
  async choose({ folder }: TraceLocation): Promise<void> {
    const choices = (await this.scorer?.checkpoints(folder)) ?? [];
    const items = choices.map(({ name, step }) => ({
      label: name,
      description: step === 0 ? vscode.l10n.t('before training') : '',
    }));
    const placeHolder = vscode.l10n.t('Which checkpoint scores the tokens?');
    const choice = await showQuickPick(items, { placeHolder });
    if (!choice) return;
    this.chosen.set(folder, choice.label);
    this.changed.fire();
  }

  dispose(): void {
    this.changed.dispose();
  }

  private key({ folder, id, mode, step }: TraceLocation): string {
    return JSON.stringify([folder, mode, step, id, this.chosen.get(folder)]);
  }
}
