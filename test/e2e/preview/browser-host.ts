// Puts a host in memory behind acquireVsCodeApi, speaking the messenger's own messages, so that the preview runs the very bundle
// that ships. `window.previewSend` lets the driver send notifications as the extension host would.
import { memoryHost, type Scenario } from './memory-host';

interface PreviewWindow extends Window {
  previewScenario: Scenario;
  previewMetrics: string;
  previewSend(method: string, params: unknown): void;
  previewSent: { method: string; params: unknown }[];
  acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): unknown; setState(state: unknown): void };
}

const preview = window as unknown as PreviewWindow;
const host = memoryHost(preview.previewScenario, preview.previewMetrics);
const sender = { type: 'extension' };
const receiver = { type: 'webview', webviewType: 'preview' };
let state: unknown;

preview.previewSent = [];
preview.previewSend = (method, params) => window.postMessage({ sender, receiver, method, params }, '*');
preview.acquireVsCodeApi = () => ({
  postMessage(message) {
    const { id, method, params } = message as { id?: string; method: string; params: unknown };
    if (id === undefined) {
      preview.previewSent.push({ method, params });
      return;
    }
    setTimeout(() => {
      try {
        window.postMessage({ sender, receiver, id, result: host.answer(method, params) }, '*');
      } catch (error) {
        window.postMessage({ sender, receiver, id, error: { message: String(error) } }, '*');
      }
    });
  },
  getState: () => state,
  setState: next => void (state = next),
});
