// What a user can do on the Live page; the views call it.

export type LiveCommand = 'episodes' | 'pause' | 'resume' | 'log';

/** What the user can do on the page. */
export interface LiveActions {
  connect(): void;
  command(command: LiveCommand): void;
  follow(on: boolean): void;
  chooseTag(tag: string): void;
}
