// The state of a page. Only `dispatch(event)` changes the state: this method applies the page's reducer to the event
// and then draws the page synchronously. If a control dispatches an event during drawing, the page is drawn again
// afterwards, because lit-html cannot render into an element that is being rendered.

export interface Store<S, E> {
  readonly state: S;
  /** Applies an event to the state and draws the result. */
  dispatch(event: E): void;
}

/**
 * Creates the store of a page and draws its initial state.
 * @param reduce pure function; returns the same object if the event changes nothing
 * @param changed draws the page; `before` is the state at the previous call, undefined at the first call
 */
export function createStore<S, E>(
  initial: S,
  reduce: (state: S, event: E) => S,
  changed: (state: S, before: S | undefined) => void,
): Store<S, E> {
  let state = initial;
  let drawn: S | undefined;
  let drawing = false;
  const draw = (): void => {
    if (drawing) return;
    drawing = true;
    try {
      while (state !== drawn) {
        const before = drawn;
        drawn = state;
        changed(state, before);
      }
    } finally {
      drawing = false;
    }
  };
  draw();
  return {
    get state() {
      return state;
    },
    dispatch(event) {
      state = reduce(state, event);
      draw();
    },
  };
}
