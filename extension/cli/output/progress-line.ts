// One progress bar at the bottom of a terminal, with lines printed above it. If standard error is not a terminal, only
// the lines are written.
import { MultiBar, Presets } from 'cli-progress';
import type { SingleBar } from 'cli-progress';

export class ProgressLine {
  private readonly bars: MultiBar | null;
  private bar: SingleBar | undefined;

  constructor(private readonly out: NodeJS.WriteStream = process.stderr) {
    const format = { format: '{bar} {what}: {value} of {total}', barsize: 24, hideCursor: true, clearOnComplete: true };
    this.bars = out.isTTY ? new MultiBar({ ...format, stream: out }, Presets.shades_classic) : null;
  }

  /** Shows the progress of the task `what`: the number of finished parts (`done`) and of all parts (`of`). */
  show(what: string, done: number, of: number): void {
    if (!this.bars) return;
    this.bar ??= this.bars.create(of, done, { what });
    this.bar.setTotal(of);
    this.bar.update(done, { what });
  }

  print(line: string): void {
    if (this.bars && this.bar) this.bars.log(`${line}\n`);
    else this.out.write(`${line}\n`);
  }

  close(): void {
    this.bars?.stop();
  }
}
