// Reverts the optimizer steps of a training step that is stopped before its end. Before the first of these optimizer
// steps, weights and optimizer moments are copied. If the training step is stopped, weights and moments are restored
// from this copy. The copy takes as much memory as the weights and moments themselves. With more than `undoParameters`
// trained parameters, no copy is made, and a stop returns to the newest checkpoint.
import type { MomentState } from '../engine/engine';
import { elements } from './decoder/decoder-config';
import type { ParameterBank } from './weights/parameter-bank';
import { Weights } from './weights/weights';

/** Maximum number of trained parameters for which a copy is made. */
export const undoParameters = 2 ** 24;

interface Remembered {
  bank: ParameterBank;
  version: number;
  copy?: { weights: Float32Array; moments: MomentState };
}

export class EngineUndo {
  private remembered: Remembered[] = [];

  constructor(private readonly most = undoParameters) {}

  /** Saves the current state for `rollBack`. */
  async remember(banks: readonly ParameterBank[]): Promise<void> {
    this.forget();
    const trained = banks.flatMap(({ specs }) => specs).reduce((sum, { dims }) => sum + elements(dims), 0);
    for (const bank of banks) {
      const entry: Remembered = { bank, version: bank.version };
      if (trained <= this.most)
        entry.copy = { weights: (await bank.read()).flat.slice(), moments: await bank.moments() };
      this.remembered.push(entry);
    }
  }

  /**
   * True if an optimizer step since `remember` cannot be reverted. The current training step must then be completed.
   */
  get isTooLate(): boolean {
    return this.remembered.some(({ bank, version, copy }) => !copy && bank.version !== version);
  }

  /** Restores the saved state. Returns false if a bank has changed since `remember` and no copy of it exists. */
  async rollBack(): Promise<boolean> {
    const changed = this.remembered.filter(({ bank, version }) => bank.version !== version);
    if (changed.some(({ copy }) => !copy)) return false;
    for (const { bank, copy } of changed) {
      await bank.write(new Weights(bank.specs, copy!.weights));
      await bank.restoreMoments(copy!.moments);
    }
    this.forget();
    return true;
  }

  forget(): void {
    this.remembered = [];
  }
}
