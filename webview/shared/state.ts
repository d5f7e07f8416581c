// A page's navigation and view settings, saved by setState. Settings of another schema version are discarded.
// `PageState.folder` is stored next to the settings; the host uses it to restore the panel after a reload.
import type { PageState } from '../../extension/protocol/page-state';
import type { Host } from './host';

interface Kept<T> extends PageState {
  schema: number;
  view: T;
}

export interface ViewState<T> {
  readonly value: T;
  /** Changes the given settings and saves all settings. */
  change(part: Partial<T>): void;
  /** Saves the run's folder. The host uses it to restore the panel. */
  keepFolder(folder: string): void;
}

/**
 * Returns the settings of a page: the saved settings if there are any, else `defaults`.
 * @param schema schema version of the page, increased when the meaning of a setting changes
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
