// Takes back the optimizer steps of a training step that is stopped halfway: weights and moments as they were before the first of them.
// The copy costs as much memory as they do, so that none is taken of many: a stop then goes back to the newest checkpoint.
import type { MomentState } from '../engine/engine';
import { elements } from './decoder-config';
import type { ParameterBank } from './parameter-bank';
import { Weights } from './weights';

/** Most trained parameters of which a copy is taken. */
export const undoParameters = 2 ** 24;

interface Remembered {
  bank: ParameterBank;
  version: number;
  copy?: { weights: Float32Array; moments: MomentState };
}

export class EngineUndo {
  private remembered: Remembered[] = [];

  constructor(private readonly most = undoParameters) {}

  /** The state to go back to is the present one. */
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

  /** Whether optimizer steps were made that cannot be taken back: the step in hand then has to be finished. */
  get isTooLate(): boolean {
    return this.remembered.some(({ bank, version, copy }) => !copy && bank.version !== version);
  }

  /** Goes back; false where a bank has changed of which there is no copy. */
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
