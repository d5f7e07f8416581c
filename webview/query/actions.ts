// What the user can do on the Query page; page.ts implements it.
import type { ChartChoice } from './state';

export interface QueryActions {
  load(): void;
  write(sql: string): void;
  run(): void;
  cancel(): void;
  chart(part: Partial<ChartChoice>): void;
  save(): void;
}
