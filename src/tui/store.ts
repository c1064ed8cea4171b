import type { Key } from './keys/key.ts';
import { press } from './keys/press.ts';
import type { Request } from './state/prompt.ts';
import { receive, type ScreenEvent, type ScreenState } from './state/screen-state.ts';

export type ScreenStore = ReturnType<typeof createStore>;

/** The one state of the screens, and who wants to know of its changes. */
export const createStore = (initial: ScreenState) => {
  let state = initial;
  const listeners = new Set<() => void>();
  const become = (next: ScreenState): void => {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  };
  return {
    get: () => state,
    dispatch: (event: ScreenEvent): void => become(receive(state, event)),
    /** A key; what it asks for beyond the screen comes back. */
    press(key: Key): Request | undefined {
      const step = press(state, key);
      become(step.state);
      return step.request;
    },
    subscribe(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
};
