// Installs an in-memory host behind acquireVsCodeApi that implements the messenger's protocol, so that the preview runs
// the shipped bundle unchanged. The driver calls `window.previewSend` to send notifications as the extension host does.
import { comparedHost, sweepHost } from './compared-host';
import { liveHost, type LiveScenario } from './live-host';
import { logHost, type LogScenario } from './log-host';
import { memoryHost, type Scenario } from './memory-host';
import { picturedHost } from './pictured-host';
import { queryHost, type QueryScenario } from './query-host';
import { sweepPageHost, type SweepPageScenario } from './sweep-page-host';
import { rolesHost } from './roles-host';
import { runTableHost } from './run-table-host';
import { storedHost, type StoredFiles } from './stored-host';
import { visualHost } from './visual-host';
import { timelineHost, type TimelineScenario } from './timeline-host';
import { partial } from '../../support/partial';

interface PreviewWindow extends Window {
  previewScenario: Scenario;
  previewMetrics: string;
  /**
   * Files of a stored run, or null for generated runs. For a stored run, the scenario consists of the run's name,
   * optionally the step at which the run is still running, and the number of times that the run's lines are repeated.
   */
  previewFiles: StoredFiles | null;
  previewSend(method: string, params: unknown): void;
  previewSent: { method: string; params: unknown }[];
  /** Requests of the page, in order. */
  previewAsked: { method: string; params: unknown }[];
  acquireVsCodeApi(): { postMessage(message: unknown): void; getState(): unknown; setState(state: unknown): void };
}

const preview = partial<PreviewWindow>(window);
const { previewFiles: files, previewMetrics: metrics } = preview;
const [at = Infinity, times = 1] = preview.previewScenario.split(' ').slice(1).map(Number);
const [, live] = /^live (\w+)$/.exec(preview.previewScenario) ?? [];
const [, query] = /^query (\w+)$/.exec(preview.previewScenario) ?? [];
const [, timeline] = /^timeline (\w+)$/.exec(preview.previewScenario) ?? [];
const [, table] = /^runs (\d+)$/.exec(preview.previewScenario) ?? [];
const [, sweep] = /^sweep (\d+)$/.exec(preview.previewScenario) ?? [];
const [, sweepPage] = /^sweep-page (\w+)$/.exec(preview.previewScenario) ?? [];
const [, pictured] = /^pictures (\d+)$/.exec(preview.previewScenario) ?? [];
const [, log] = /^log (\w+)$/.exec(preview.previewScenario) ?? [];
const isRoles = /^roles \w+$/.test(preview.previewScenario);
const csv = files?.['experiment.csv'];
const host = csv
  ? comparedHost(csv, metrics)
  : files?.['heats.json']
    ? visualHost(files)
    : files
      ? storedHost(files, metrics, at, times)
      : isRoles
        ? rolesHost()
        : live
          ? liveHost(live as LiveScenario)
          : pictured
            ? picturedHost(Number(pictured))
            : timeline
              ? timelineHost(timeline as TimelineScenario)
              : table
                ? runTableHost(Number(table), metrics)
                : log
                  ? logHost(log as LogScenario)
                  : query
                    ? queryHost(query as QueryScenario)
                    : sweep
                      ? sweepHost(Number(sweep), metrics)
                      : sweepPage
                        ? sweepPageHost(sweepPage as SweepPageScenario, metrics)
                        : memoryHost(preview.previewScenario, metrics);
const sender = { type: 'extension' };
const receiver = { type: 'webview', webviewType: 'preview' };
let state: unknown;

preview.previewSent = [];
preview.previewAsked = [];
preview.previewSend = (method, params) => window.postMessage({ sender, receiver, method, params }, '*');
preview.acquireVsCodeApi = () => ({
  postMessage(message) {
    const { id, method, params } = message as { id?: string; method: string; params: unknown };
    if (id === undefined) {
      preview.previewSent.push({ method, params });
      return;
    }
    preview.previewAsked.push({ method, params });
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
