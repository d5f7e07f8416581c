// Pauses a run of the configuration `words` in the steps of its training or validation episodes. Each hold is a file
// with a number of its own; a paused step writes a mark with that number, so that a mark of an earlier hold, which a
// step may write as late as after its release, is never taken for a mark of the present one.
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './terminal';

export class HeldEpisodes {
  private static holds = 0;
  private readonly path: string;
  private readonly marks = new Map<string, string>();
  /** Overrides that make a run of `words` obey these holds. */
  readonly overrides: readonly string[];

  constructor(workspace: string) {
    this.path = join(workspace, `hold-${HeldEpisodes.holds++}`);
    this.overrides = [`custom_envs.Words.env_config.hold=${this.path}`, 'workbench.step_timeout_ms=60000'];
  }

  /**
   * From now on, the next step of each episode of the mode waits. Replaces an earlier hold without releasing it: steps
   * that wait already do not write a mark again.
   */
  set(mode: 'train' | 'val'): this {
    const hold = String(HeldEpisodes.holds++);
    this.marks.set(mode, `${this.path}.${mode}.reached.${hold}`);
    writeFileSync(`${this.path}.new`, hold);
    renameSync(`${this.path}.new`, `${this.path}.${mode}`); // never empty
    return this;
  }

  /** Resolves when a step waits in the present hold of the mode. */
  async reached(mode: 'train' | 'val'): Promise<void> {
    await until(`a step of a ${mode} episode waits`, () => existsSync(this.marks.get(mode)!));
  }

  isSet(mode: 'train' | 'val'): boolean {
    return existsSync(`${this.path}.${mode}`);
  }

  release(mode: 'train' | 'val'): this {
    rmSync(`${this.path}.${mode}`, { force: true });
    return this;
  }

  /** Continues a held validation and holds the next training rollout, or the reverse. */
  async swap(from: 'train' | 'val', to: 'train' | 'val'): Promise<void> {
    this.set(to).release(from);
    await this.reached(to);
  }
}
