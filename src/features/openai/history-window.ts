import { createTurns } from '../../core/event-loop-turns.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { hexOf } from './items.ts';

/* Parts of the history of a session, for readers that do not need all of it. */

export type HistoryStore = Pick<SessionsFeature['store'], 'messagesBetween'>;

const firstChunk = 64;
// More at once would keep others waiting.
const maxChunk = 1024;

/** The session was removed while its history was read. */
export class HistoryGoneError extends Error {
  override readonly name = 'HistoryGoneError';
}

type Read = (first: number, end: number) => Promise<readonly ChatMessage[]>;

const readerOf =
  (store: HistoryStore, session: SessionRow): Read =>
  async (first, end) => {
    const messages = await store.messagesBetween(session, first, end);
    if (messages.length !== end - first) throw new HistoryGoneError();
    return messages;
  };

const runHexOf = (message: ChatMessage | undefined): string => (message?.runId == null ? '' : hexOf(message.runId));

/** The index of a message of a run; -1: the session has none. */
const indexOfRun = async (store: HistoryStore, session: SessionRow, runHex: string): Promise<number> => {
  const read = readerOf(store, session);
  const count = session.message_count;
  // Ids of runs are in the order of their beginning, as a rule.
  for (let [first, end] = [0, count]; first < end; ) {
    const middle = Math.floor((first + end) / 2);
    const hex = runHexOf((await read(middle, middle + 1))[0]);
    if (hex === runHex) return middle;
    if (hex < runHex) first = middle + 1;
    else end = middle;
  }
  // A run that has waited may have a lower id than the run before it, and so has a run after a clock regression.
  const turn = createTurns();
  for (let first = 0; first < count; first += maxChunk) {
    const chunk = await read(first, Math.min(count, first + maxChunk));
    const at = chunk.findIndex((message) => runHexOf(message) === runHex);
    if (at >= 0) return first + at;
    await turn();
  }
  return -1;
};

/** Where further messages are needed. */
export interface MissingMessages {
  readonly before: boolean;
  readonly behind: boolean;
}

/** A contiguous part of a history that grows at either end. */
export class HistoryWindow {
  readonly #read: Read;
  readonly #count: number;
  readonly #turn = createTurns();
  #first: number;
  #end: number;
  #messages: readonly ChatMessage[] = [];
  #chunk = firstChunk;

  constructor(store: HistoryStore, session: SessionRow, start: 'first' | 'last' | number) {
    this.#read = readerOf(store, session);
    this.#count = session.message_count;
    this.#first = start === 'first' ? 0 : start === 'last' ? this.#count : start;
    this.#end = this.#first;
  }

  /** A window that has a message of a run; null: the session has none. */
  static async at(store: HistoryStore, session: SessionRow, runHex: string): Promise<HistoryWindow | null> {
    const index = await indexOfRun(store, session, runHex);
    if (index < 0) return null;
    const history = new HistoryWindow(store, session, index);
    await history.grow({ before: false, behind: true });
    return history;
  }

  get messages(): readonly ChatMessage[] {
    return this.#messages;
  }

  /** Reads further messages. False: the history begins or ends here. */
  async grow({ before, behind }: MissingMessages): Promise<boolean> {
    const first = before ? Math.max(0, this.#first - this.#chunk) : this.#first;
    const end = behind ? Math.min(this.#count, this.#end + this.#chunk) : this.#end;
    const hasGrown = first < this.#first || end > this.#end;
    const earlier = first < this.#first ? await this.#read(first, this.#first) : [];
    const later = end > this.#end ? await this.#read(this.#end, end) : [];
    this.#messages = [...earlier, ...this.#messages, ...later];
    [this.#first, this.#end] = [first, end];
    this.#chunk = Math.min(2 * this.#chunk, maxChunk);
    await this.#turn();
    return hasGrown;
  }

  /**
   * The messages of whole runs, and what is behind them: every result of a call in them. The runs at the ends of the window are
   * left out unless the history begins or ends there.
   */
  wholeRuns(): { readonly messages: readonly ChatMessage[]; readonly behind: readonly ChatMessage[] } {
    const all = this.#messages;
    const first = this.#first === 0 ? 0 : all.findIndex(({ runId }) => runId !== all[0]?.runId);
    if (first < 0) return { messages: [], behind: [] };
    if (this.#end === this.#count) return { messages: all.slice(first), behind: [] };
    // Results of an earlier run stand before anything else in the next one.
    const next = all.findLastIndex(({ role }) => role !== 'Tool');
    const last = all.findLastIndex(({ runId }, index) => index < next && runId !== all[next]?.runId);
    return { messages: all.slice(first, last + 1), behind: all.slice(last + 1) };
  }
}

/** The first message of a run in a session; undefined: there is none. */
export const firstOfRun = async (
  store: HistoryStore,
  session: SessionRow,
  runHex: string,
): Promise<ChatMessage | undefined> => {
  const history = await HistoryWindow.at(store, session, runHex);
  if (history === null) return undefined;
  while (runHexOf(history.messages[0]) === runHex && (await history.grow({ before: true, behind: false })));
  return history.messages.find((message) => runHexOf(message) === runHex);
};
