// The page's link to the extension host: requests, notifications, and the state that survives a hidden or restored page.
// Pages know this interface alone and never touch acquireVsCodeApi, so that tests and previews run them with a host in memory.
import { Messenger } from 'vscode-messenger-webview';
import { HOST_EXTENSION, type NotificationType, type RequestType } from 'vscode-messenger-common';

export interface Host {
  /** Asks and waits; rejects with the host's error. */
  request<P, R>(type: RequestType<P, R>, params: P): Promise<R>;
  notify<P>(type: NotificationType<P>, params: P): void;
  /** One handler a type; a later one takes the place of an earlier. */
  onNotify<P>(type: NotificationType<P>, handler: (params: P) => void): void;
  /** What `setState` kept, undefined at the first time. */
  getState(): unknown;
  setState(state: unknown): void;
}

/** What VS Code gives a webview, once a page. */
interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** The link to the real host. To be called once. */
export function connectHost(): Host {
  const api = acquireVsCodeApi();
  const messenger = new Messenger(api);
  messenger.start();
  return {
    request: (type, params) => messenger.sendRequest(type, HOST_EXTENSION, params),
    notify: (type, params) => messenger.sendNotification(type, HOST_EXTENSION, params),
    onNotify: (type, handler) => void messenger.onNotification(type, handler),
    getState: () => api.getState(),
    setState: state => api.setState(state),
  };
}

/** The sentence of whatever a request rejected with (an Error, or the messenger's plain `{message}`). */
export function messageOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'message' in error) return String(error.message);
  return String(error);
}
