// What a checkpoint says of an episode's tokens: asked of the inspection process when an overlay or a reader first wants it, with progress
// in the status bar, and remembered by episode and checkpoint. An overlay that was remembered asks unasked: what goes wrong then is
// remembered too, for whoever wants to say it quietly, and told aloud only to a reader who asked.
import * as vscode from 'vscode';
import type { CheckpointChoice, Rescored, RescoreRequest } from '../../protocol/inspection';
import { withProgress } from '../notices';
import type { TracePlace } from './trace-uri';

/** What is asked of the inspection process. */
export interface Scorer {
  /** `onPhase` hears in a few words what takes time. */
  rescore(request: RescoreRequest, asking: { onPhase(words: string): void }): Promise<Rescored>;
  checkpoints(folder: string): Promise<CheckpointChoice[]>;
}

/** Episodes whose scores are remembered. */
const remembered = 32;

export class TraceScores implements vscode.Disposable {
  private readonly scores = new Map<string, Rescored | 'asked' | { failed: string }>();
  /** What a reader has asked for, and hears of when it fails. */
  private readonly askedFor = new Set<string>();
  /** Checkpoints that were chosen, by the run's folder; the newest where none was. */
  private readonly chosen = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<void>();
  /** Scores have come, or others are wanted. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly scorer: Scorer | undefined,
    private readonly hears: { tell(error: unknown): void; log(words: string): void },
  ) {}

  /** What is known; nothing is asked. */
  known(place: TracePlace): Rescored | undefined {
    const scores = this.scores.get(this.key(place));
    return typeof scores === 'object' && 'tokens' in scores ? scores : undefined;
  }

  /** Why an episode was not scored when that was last tried. */
  failure(place: TracePlace): string | undefined {
    const scores = this.scores.get(this.key(place));
    return typeof scores === 'object' && 'failed' in scores ? scores.failed : undefined;
  }

  /** Asks where it was not asked yet; one that failed is asked again, and its failure told, where a reader asked for it. */
  want(place: TracePlace, why: 'shown' | 'asked for'): void {
    if (!this.scorer) return;
    const key = this.key(place);
    if (this.known(place)) return;
    if (why === 'asked for') this.askedFor.add(key);
    const isWaiting = this.scores.get(key) === 'asked';
    if (isWaiting || (this.failure(place) !== undefined && why === 'shown')) return;
    this.scores.set(key, 'asked');
    for (const old of [...this.scores.keys()].slice(0, -remembered)) this.scores.delete(old);
    const checkpoint = this.chosen.get(place.folder);
    const title = vscode.l10n.t('Scoring {0} with {1}', place.id, checkpoint ?? vscode.l10n.t('the newest checkpoint'));
    const { scorer } = this;
    const asked = withProgress({ location: vscode.ProgressLocation.Window, title }, progress =>
      scorer.rescore({ ...place, checkpoint }, { onPhase: words => progress.report(words) }),
    );
    void asked.then(
      scores => {
        this.scores.set(key, scores);
        this.askedFor.delete(key);
        this.changed.fire();
      },
      (error: unknown) => {
        const words = error instanceof Error ? error.message : String(error);
        this.scores.set(key, { failed: words });
        this.changed.fire();
        if (this.askedFor.delete(key)) this.hears.tell(error);
        else this.hears.log(words);
      },
    );
  }

  /** Lets the reader choose the checkpoint that scores a run's episodes. */
  async choose({ folder }: TracePlace): Promise<void> {
    const choices = (await this.scorer?.checkpoints(folder)) ?? [];
    const items = choices.map(({ name, step }) => ({
      label: name,
      description: step === 0 ? vscode.l10n.t('before training') : '',
    }));
    const placeHolder = vscode.l10n.t('Which checkpoint scores the tokens?');
    const choice = await vscode.window.showQuickPick(items, { placeHolder });
    if (!choice) return;
    this.chosen.set(folder, choice.label);
    this.changed.fire();
  }

  dispose(): void {
    this.changed.dispose();
  }

  private key({ folder, id, mode, step }: TracePlace): string {
    return JSON.stringify([folder, mode, step, id, this.chosen.get(folder)]);
  }
}
