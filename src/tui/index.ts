import process from 'node:process';
import { render } from 'ink';
import { createElement } from 'react';
import type { Client } from '../client/client.ts';
import { superviseFeeds } from './feeds/subscriptions.ts';
import { perform } from './perform.ts';
import { Screen } from './screen.component.ts';
import type { Request } from './state/request.ts';
import { initialState } from './state/screen-state.ts';
import { createStore } from './store.ts';

export interface ScreensOptions {
  readonly client: Client;
  /** Where the runs come from, as the head of the screen names it. */
  readonly target: string;
  readonly color: boolean;
  /** Closes the screens from outside. */
  readonly signal: AbortSignal;
}

const TICK_MS = 1_000;
/** As often as a person sees, and as rarely as a slow terminal line needs it. */
const FRAMES_PER_SECOND = 30;

/**
 * Shows the screens on the terminal of the process until they are left. The terminal is then as it was before. Rejects
 * with what failed unexpectedly.
 */
export const openScreens = async ({ client, target, color, signal }: ScreensOptions): Promise<void> => {
  const { stdout } = process;
  const store = createStore(initialState(target, Date.now(), { columns: stdout.columns, rows: stdout.rows }));
  const closing = Promise.withResolvers<void>();
  const onRequest = (request: Request): void => {
    if (request.kind === 'quit') closing.resolve();
    else perform(client, store, request).catch(closing.reject);
  };
  const left = (): void => closing.resolve();
  signal.addEventListener('abort', left);
  if (signal.aborted) left();
  const ticking = setInterval(() => store.dispatch({ type: 'tick', now: Date.now() }), TICK_MS);
  const instance = render(createElement(Screen, { store, color, onRequest }), {
    alternateScreen: true,
    incrementalRendering: true,
    interactive: true,
    exitOnCtrlC: false,
    patchConsole: false,
    maxFps: FRAMES_PER_SECOND,
  });
  const feeds = superviseFeeds({ client, store }, closing.reject);
  try {
    await Promise.race([closing.promise, instance.waitUntilExit()]);
  } finally {
    clearInterval(ticking);
    signal.removeEventListener('abort', left);
    instance.unmount();
    await instance.waitUntilExit().catch(closing.reject);
    await feeds.close();
  }
};
