// The episode and turn at which an Episodes page is to open. The page may still be loading, so the target waits until
// the page takes it.
import * as vscode from 'vscode';
import type { EpisodeTarget } from '../../protocol/episodes-page';

export class EpisodeTargets implements vscode.Disposable {
  private readonly waiting = new Map<string, EpisodeTarget>();
  private readonly added = new vscode.EventEmitter<string>();
  /** Fires with the run folder of a new target. */
  readonly onDidAdd = this.added.event;

  /** Sets the target of a run's page; it replaces a target that the page has not taken. */
  set(folder: string, target: EpisodeTarget): void {
    this.waiting.set(folder, target);
    this.added.fire(folder);
  }

  /** Returns the target of a run's page once. */
  take(folder: string): EpisodeTarget | undefined {
    const target = this.waiting.get(folder);
    this.waiting.delete(folder);
    return target;
  }

  dispose(): void {
    this.added.dispose();
  }
}
