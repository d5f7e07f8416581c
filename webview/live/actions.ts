// User actions of the Live page, called by the views.

export type LiveCommand = 'episodes' | 'pause' | 'resume' | 'log';

export interface LiveActions {
  connect(): void;
  command(command: LiveCommand): void;
  follow(on: boolean): void;
  chooseTag(tag: string): void;
}
