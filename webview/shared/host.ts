// The page's interface to the extension host: requests, notifications, and a saved state that persists while the page
// is hidden and from which the page is restored. Pages use this interface and never `acquireVsCodeApi`, so that tests
// and previews can run pages with an in-memory host.
import { Messenger } from 'vscode-messenger-webview';
import { windowWidth } from '../../extension/protocol/page-state';
import { HOST_EXTENSION, type NotificationType, type RequestType } from 'vscode-messenger-common';

export interface Host {
  /** Sends a request; rejects with the host's error. */
  request<P, R>(type: RequestType<P, R>, params: P): Promise<R>;
  notify<P>(type: NotificationType<P>, params: P): void;
  /** Sets the handler of a notification type and replaces an earlier handler. */
  onNotify<P>(type: NotificationType<P>, handler: (params: P) => void): void;
  /** Returns the state saved by `setState`; undefined before the first call. */
  getState(): unknown;
  setState(state: unknown): void;
}

/** The API that VS Code provides to a webview, once per page. */
interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** Connects to the extension host. Call it once per page. */
export function connectHost(): Host {
  const api = acquireVsCodeApi();
  const messenger = new Messenger(api);
  messenger.start();
  reportWidth(width => messenger.sendNotification(windowWidth, HOST_EXTENSION, { width }));
  return {
    request: (type, params) => messenger.sendRequest(type, HOST_EXTENSION, params),
    notify: (type, params) => messenger.sendNotification(type, HOST_EXTENSION, params),
    onNotify: (type, handler) => void messenger.onNotification(type, handler),
    getState: () => api.getState(),
    setState: state => api.setState(state),
  };
}

/** Reports the width of the window around all pages and editors, now and after each change. */
function reportWidth(report: (width: number) => void): void {
  let reported: number | undefined;
  const update = (): void => {
    if (outerWidth > 0 && outerWidth !== reported) report((reported = outerWidth));
  };
  update();
  addEventListener('resize', update);
}

/**
 * Returns the message of the error with which a request was rejected. The error is an `Error` or an object `{message}`
 * of the messenger.
 */
export function messageOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error) return String(error.message);
  return String(error);
}
