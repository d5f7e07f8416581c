// Which lines of a growing file belong to a step, if each line names its step. A trainer that returns to a checkpoint
// appends lines of steps that the file already has; its later lines then replace the earlier ones of the same step. In
// the file of several processes, the lines of neighbouring steps are mixed instead, and all of them count.
import { maximum } from '../common/lists';

/** Maximum number of parts; more are due to several processes that write the file. */
const mostParts = 4096;

/** Bytes [from, to) with complete lines of one step. */
export interface StepRange {
  from: number;
  to: number;
}

/** Lines of one step within a part of the file. */
interface Block {
  /** Index of the part. */
  part: number;
  lines: number;
  ranges: StepRange[];
}

/** A part of the file in which no step precedes a lower one. */
interface Part {
  first: number;
  last: number;
}

export class WrittenSteps {
  private readonly blocks = new Map<number, Block[]>();
  private readonly parts: Part[] = [];
  private attempts: number[] | undefined;

  /** Adds a line of a step; lines are added in the order of the file. */
  add(step: number, from: number, to: number): void {
    this.attempts = undefined;
    const current = this.parts.at(-1);
    if (!current || (step < current.last && this.parts.length < mostParts))
      this.parts.push({ first: step, last: step });
    else current.last = Math.max(current.last, step);
    const part = this.parts.length - 1;
    const own = this.blocks.get(step) ?? [];
    this.blocks.set(step, own);
    let block = own.at(-1);
    if (block?.part !== part) own.push((block = { part, lines: 0, ranges: [] }));
    block.lines++;
    const range = block.ranges.at(-1);
    if (range?.to === from) range.to = to;
    else block.ranges.push({ from, to });
  }

  clear(): void {
    this.attempts = undefined;
    this.parts.length = 0;
    this.blocks.clear();
  }

  /** Returns the steps in the order of their first lines. */
  get steps(): number[] {
    return [...this.blocks.keys()];
  }

  /** Step of the first line and of the last line; undefined without lines. */
  get ends(): [first: number, last: number] | undefined {
    const [first, last] = [this.parts.at(0), this.parts.at(-1)];
    return first && last && [first.first, last.last];
  }

  /** Returns where the lines of a step are; those of the latest attempt at this step. */
  rangesOf(step: number): StepRange[] {
    const own = this.blocks.get(step) ?? [];
    const attempts = (this.attempts ??= this.attemptsOfParts());
    const latest = maximum(
      own.map(({ part }) => attempts[part]),
      0,
    );
    return own.flatMap(({ part, ranges }) => (attempts[part] === latest ? ranges : []));
  }

  /**
   * Numbers the attempts to which the parts belong. A part begins a new attempt if it repeats its first step: it has at
   * least half as many lines of this step as the attempt before, or is still at this step. If this would be so for
   * more than half of all steps, several processes write the file, and there is one attempt.
   */
  private attemptsOfParts(): number[] {
    const isMixed = this.parts.length - 1 > this.blocks.size || this.parts.length >= mostParts;
    if (isMixed) return this.parts.map(() => 0);
    const attempts: number[] = [];
    this.parts.forEach(({ first, last }, part) => {
      const own = this.blocks.get(first)!;
      const earlier = own.filter(block => block.part < part);
      const newest = maximum(
        earlier.map(block => attempts[block.part]),
        0,
      );
      const before = earlier.reduce((sum, block) => sum + (attempts[block.part] === newest ? block.lines : 0), 0);
      const lines = own.find(block => block.part === part)!.lines;
      const isUnfinished = part === this.parts.length - 1 && last === first;
      const isRepeated = before > 0 && (isUnfinished || 2 * lines >= before);
      attempts.push((attempts.at(-1) ?? 0) + Number(isRepeated));
    });
    return (attempts.at(-1) ?? 0) > this.blocks.size / 2 ? attempts.map(() => 0) : attempts;
  }
}
