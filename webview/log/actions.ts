// User actions of the Log page, called by the views.
import type { LogCommand } from '../../extension/protocol/log-page';
import type { ViewSettings } from './state';

export interface LogActions {
  load(): void;
  command(of: LogCommand): void;
  change(settings: Partial<ViewSettings>): void;
  search(text: string): void;
  /** Shows the details of an entry; null hides them. */
  select(key: string | null): void;
}
