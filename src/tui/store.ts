import type { Key } from './keys/key.ts';
import { press } from './keys/press.ts';
import type { Request } from './state/request.ts';
import { receive, type ScreenEvent, type ScreenState } from './state/screen-state.ts';

/** The one state of the screens, and who wants to know of its changes. */
export interface ScreenStore {
  get(): ScreenState;
  dispatch(event: ScreenEvent): void;
  /** A key; what it asks for beyond the screen comes back. */
  press(key: Key): Request | undefined;
  subscribe(listener: () => void): () => void;
}

export const createStore = (initial: ScreenState): ScreenStore => {
  let state = initial;
  const listeners = new Set<() => void>();
  const become = (next: ScreenState): void => {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  };
  return {
    get: () => state,
    dispatch: (event) => become(receive(state, event)),
    press(key) {
      const step = press(state, key);
      become(step.state);
      return step.request;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
