import process from 'node:process';
import { render } from 'ink';
import { createElement } from 'react';
import type { Client } from '../client/client.ts';
import { superviseFeeds } from './feeds/subscriptions.ts';
import { perform } from './perform.ts';
import { Screen } from './screen.component.ts';
import type { Request } from './state/prompt.ts';
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

const tickMs = 1_000;
/** As often as a person sees, and as rarely as a slow terminal line needs it. */
const framesPerSecond = 30;

/** The sequence OSC 52: the terminal, also one at the other end of a connection, puts the text where it pastes from. */
const copyByTerminal = (text: string): void => {
  process.stdout.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`);
};

/**
 * Shows the screens on the terminal of the process until they are left. The terminal is then as it was before. Resolves
 * with the run that the command line is to go on with, or null; rejects with what failed unexpectedly.
 * Design: docs/design/command-line.md.
 */
export const openScreens = async ({ client, target, color, signal }: ScreensOptions): Promise<string | null> => {
  const { stdout } = process;
  const store = createStore(initialState(target, Date.now(), { columns: stdout.columns, rows: stdout.rows }));
  const closing = Promise.withResolvers<string | null>();
  const onRequest = (request: Request): void => {
    if (request.kind === 'quit') closing.resolve(null);
    else if (request.kind === 'open') closing.resolve(request.runId);
    else perform({ client, store, copy: copyByTerminal }, request).catch(closing.reject);
  };
  const left = (): void => closing.resolve(null);
  signal.addEventListener('abort', left);
  if (signal.aborted) left();
  const ticking = setInterval(() => store.dispatch({ type: 'tick', now: Date.now() }), tickMs);
  const instance = render(createElement(Screen, { store, color, onRequest }), {
    alternateScreen: true,
    incrementalRendering: true,
    interactive: true,
    exitOnCtrlC: false,
    patchConsole: false,
    maxFps: framesPerSecond,
  });
  const feeds = superviseFeeds({ client, store }, closing.reject);
  try {
    return await Promise.race([closing.promise, instance.waitUntilExit().then(() => null)]);
  } finally {
    clearInterval(ticking);
    signal.removeEventListener('abort', left);
    instance.unmount();
    await instance.waitUntilExit().catch(closing.reject);
    await feeds.close();
  }
};
