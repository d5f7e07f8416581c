// Tells a page when it is shown and hidden. VS Code keeps some hidden pages in memory, so that a return to their tab is
// immediate; such a page receives no messages while it is hidden, and the extension host tells it when it is shown again.
import { pageVisibility } from '../../extension/protocol/page-state';
import type { Host } from './host';

/** Calls `changed` each time the page is shown or hidden, but not at its start. */
export function onVisibility(host: Host, changed: (isVisible: boolean) => void): void {
  document.addEventListener('visibilitychange', () => changed(document.visibilityState === 'visible'));
  host.onNotify(pageVisibility, ({ visible }) => changed(visible));
}

/** Calls `load` each time the page is shown again, because a hidden page receives no messages. */
export const onShown = (host: Host, load: () => void): void => onVisibility(host, isVisible => isVisible && load());
