// A page's navigation and view settings, kept by setState. What was written by another version of the page is dropped, not
// guessed at. Beside the settings stands PageState's `folder`, by which the host restores the panel after a reload.
import type { PageState } from '../../extension/protocol/pages';
import type { Host } from './host';

interface Kept<T> extends PageState {
  schema: number;
  view: T;
}

export interface ViewState<T> {
  readonly value: T;
  /** Changes some settings and keeps them. */
  change(part: Partial<T>): void;
  /** Notes the run's folder for a restore. */
  keepFolder(folder: string): void;
}

/**
 * Settings of a page, starting from what was kept or else from `defaults`.
 * @param schema the page's own number, raised when the meaning of a setting changes
 */
export function viewState<T extends object>(host: Host, schema: number, defaults: T): ViewState<T> {
  const kept = host.getState() as Partial<Kept<T>> | undefined;
  let view = kept?.schema === schema ? { ...defaults, ...kept.view } : defaults;
  let folder = kept?.folder ?? document.body.dataset.run ?? '';
  const keep = () => host.setState({ folder, schema, view } satisfies Kept<T>);
  return {
    get value() {
      return view;
    },
    change(part) {
      view = { ...view, ...part };
      keep();
    },
    keepFolder(path) {
      if (path === folder && host.getState() !== undefined) return;
      folder = path;
      keep();
    },
  };
}
