// What a checkpoint says of an episode's tokens: asked of the inspection process when an overlay or a reader first wants it, with progress
// in the status bar, and remembered by episode and checkpoint.
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
  private readonly scores = new Map<string, Rescored | 'asked' | 'failed'>();
  /** Checkpoints that were chosen, by the run's folder; the newest where none was. */
  private readonly chosen = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<void>();
  /** Scores have come, or others are wanted. */
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly scorer: Scorer | undefined,
    private readonly report: (error: unknown) => void,
  ) {}

  /** What is known; nothing is asked. */
  known(place: TracePlace): Rescored | undefined {
    const scores = this.scores.get(this.key(place));
    return typeof scores === 'object' ? scores : undefined;
  }

  /** Asks where it was not asked yet; one that failed is asked again where `again`. */
  want(place: TracePlace, again = false): void {
    if (!this.scorer) return;
    const key = this.key(place);
    const before = this.scores.get(key);
    if (before !== undefined && !(again && before === 'failed')) return;
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
        this.changed.fire();
      },
      (error: unknown) => {
        this.scores.set(key, 'failed');
        this.changed.fire();
        this.report(error);
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
