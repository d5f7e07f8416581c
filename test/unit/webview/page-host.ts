// An in-memory host as pages see it, and the browser features that a DOM without layout lacks.
import { vi } from 'vitest';
import { readFileSync } from 'node:fs';
import type { NotificationType } from 'vscode-messenger-common';
import type { Plot, Plotter } from '../../../webview/charts/plot';
import type { PlotData } from '../../../extension/run-data/charts/plot-data';
import type { Host } from '../../../webview/shared/host';
import { memoryHost, type MemoryHost, type Scenario } from '../../e2e/preview/memory-host';

export interface PageHost extends Host {
  /** Sends a notification as the extension host would. */
  send<P>(type: NotificationType<P>, params: P): void;
  /** Notifications that the page sent to the host. */
  readonly sent: { method: string; params: unknown }[];
  /** Requests by method, in order. */
  readonly asked: string[];
  /** Requests with their parameters, in order. */
  readonly params: { method: string; params: unknown }[];
  /** Refuses later requests of this method. */
  refuse(method: string, message: string): void;
  accept(method: string): void;
  /** Never answers later requests of this method. */
  hold(method: string): void;
  /** Answers later requests of this method again. */
  release(method: string): void;
}

const metrics = readFileSync('docs/METRICS.md', 'utf8');

export function pageHost(scenario: Scenario | MemoryHost, kept?: unknown): PageHost {
  const memory = typeof scenario === 'string' ? memoryHost(scenario, metrics) : scenario;
  const handlers = new Map<string, (params: never) => void>();
  const refused = new Map<string, string>();
  const held = new Set<string>();
  const sent: PageHost['sent'] = [];
  const asked: string[] = [];
  const requests: PageHost['params'] = [];
  let state = kept;
  return {
    sent,
    asked,
    params: requests,
    async request(type, params) {
      asked.push(type.method);
      requests.push({ method: type.method, params });
      const message = refused.get(type.method);
      if (held.has(type.method)) return new Promise(() => undefined) as never;
      // The messenger rejects with a plain object, not an Error.
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- as the messenger does
      if (message !== undefined) return Promise.reject({ message });
      return structuredClone(memory.answer(type.method, params)) as never;
    },
    notify: (type, params) => void sent.push({ method: type.method, params }),
    onNotify: (type, handler) => void handlers.set(type.method, handler),
    getState: () => state,
    setState: next => void (state = structuredClone(next)),
    send: (type, params) => handlers.get(type.method)?.(params as never),
    refuse: (method, message) => void refused.set(method, message),
    accept: method => void refused.delete(method),
    hold: method => void held.add(method),
    release: method => void held.delete(method),
  };
}

/** A plotter that records the latest data by canvas. */
export function recordingPlotter(): { plotter: Plotter; drawn: Map<HTMLCanvasElement, PlotData> } {
  const drawn = new Map<HTMLCanvasElement, PlotData>();
  const plotter: Plotter = (canvas): Plot => ({
    update: data => void drawn.set(canvas, data),
    xAt: pixel => pixel,
    pixelOf: x => x,
    markAt: (x, y) => (y > 90 ? (drawn.get(canvas)?.marks.find(mark => mark.x === x) ?? null) : null),
    destroy: () => void drawn.delete(canvas),
  });
  return { plotter, drawn };
}

/** Simulates visibility: every observed element is visible until `show` changes it. */
export function stubVisibility(): { show(element: Element, visible: boolean): void } {
  const callbacks: IntersectionObserverCallback[] = [];
  class Observer {
    constructor(private readonly callback: IntersectionObserverCallback) {
      callbacks.push(callback);
    }
    observe(target: Element) {
      this.callback([{ target, isIntersecting: true } as IntersectionObserverEntry], this as never);
    }
    unobserve() {}
    disconnect() {}
  }
  vi.stubGlobal('IntersectionObserver', Observer);
  return {
    show: (target, isIntersecting) =>
      callbacks.forEach(callback => callback([{ target, isIntersecting } as IntersectionObserverEntry], null as never)),
  };
}

/** Callbacks that remove the listeners of earlier pages from the shared document. */
let leftovers: (() => void)[] = [];

/** An empty page with a theme, isolated from the pages of earlier tests. */
export function freshPage(): HTMLElement {
  for (const end of leftovers) end();
  leftovers = [];
  const { addEventListener } = EventTarget.prototype;
  document.addEventListener = (type: string, listener: EventListenerOrEventListenerObject, options?: object) => {
    addEventListener.call(document, type, listener, options);
    leftovers.push(() => document.removeEventListener(type, listener, options));
  };
  const Observer = MutationObserver;
  vi.stubGlobal(
    'MutationObserver',
    class extends Observer {
      constructor(callback: MutationCallback) {
        super(callback);
        leftovers.push(() => this.disconnect());
      }
    },
  );
  leftovers.push(() => vi.stubGlobal('MutationObserver', Observer));
  document.body.className = 'vscode-dark';
  document.body.dataset.run = '/runs/one';
  document.body.replaceChildren();
  const root = document.createElement('div');
  document.body.append(root);
  return root;
}

/** Waits until current requests, frames and microtasks have finished. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise(resolve => setImmediate(resolve));
  await new Promise(resolve => requestAnimationFrame(() => resolve(undefined)));
}

export const press = (key: string, target: EventTarget = document.body): boolean =>
  target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, composed: true }));
