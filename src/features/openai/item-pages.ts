import { invalidField } from '../../contract/errors.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import { type HistoryStore, HistoryWindow, type MissingMessages } from './history-window.ts';
import { type ItemQuery, type ItemRules, itemPage, itemRulesOf, itemsOf, pageSize, runOfItem } from './items.ts';
import type { Item } from './responses.schema.ts';

export interface ItemPageDeps {
  readonly store: HistoryStore;
  readonly items: ItemRules;
}

interface FoundItems {
  readonly items: readonly Item[];
  /** Of the item that was looked for. */
  readonly at: number;
}

/**
 * Items of a session, of which only the messages around a page are read. Ids of items count within their run, and the result of a
 * call is part of its item, so that items are made of whole runs.
 */
export const createItemPages = ({ store, items: rules }: ItemPageDeps) => {
  const itemsIn = ({ tenant_id: tenantId, agent_name: agentName }: SessionRow, history: HistoryWindow) => {
    const { messages, behind } = history.wholeRuns();
    return itemsOf(tenantId, messages, itemRulesOf(agentName, rules), behind);
  };

  /** More than `size` items at one end of the history, or all of them. */
  const atEnd = async (session: SessionRow, order: 'asc' | 'desc', size: number): Promise<readonly Item[]> => {
    const missing = { before: order === 'desc', behind: order === 'asc' };
    const history = new HistoryWindow(store, session, order === 'asc' ? 'first' : 'last');
    for (;;) {
      const hasGrown = await history.grow(missing);
      const items = itemsIn(session, history);
      if (items.length > size || !hasGrown) return items;
    }
  };

  /** An item with its neighbors; null: there is no such item. */
  const around = async (
    session: SessionRow,
    itemId: string,
    missing: (found: FoundItems) => MissingMessages,
  ): Promise<FoundItems | null> => {
    const runHex = runOfItem(itemId);
    const history = runHex === null ? null : await HistoryWindow.at(store, session, runHex);
    if (history === null) return null;
    for (;;) {
      const items = itemsIn(session, history);
      const at = items.findIndex(({ id }) => id === itemId);
      const found = at < 0 ? null : { items, at };
      // The run of the item is complete, and does not have it.
      if (found === null && items.some(({ id }) => runOfItem(id) === runHex)) return null;
      if (!(await history.grow(found === null ? { before: true, behind: true } : missing(found)))) return found;
    }
  };

  return {
    /** One page. Throws `HistoryGoneError` where the session is removed meanwhile. */
    async page(session: SessionRow, query: ItemQuery) {
      const { size, order } = pageSize(query);
      if (query.after === undefined) return itemPage(await atEnd(session, order, size), query);
      const found = await around(session, query.after, ({ items, at }) =>
        order === 'asc'
          ? { before: false, behind: items.length - at - 1 <= size }
          : { before: at <= size, behind: false },
      );
      if (found === null) throw invalidField('after', 'names no item of this list');
      return itemPage(found.items, query);
    },
    /** Null: the session has no such item. Throws `HistoryGoneError` where it is removed meanwhile. */
    async item(session: SessionRow, itemId: string): Promise<Item | null> {
      const found = await around(session, itemId, () => ({ before: false, behind: false }));
      return found?.items[found.at] ?? null;
    },
  };
};
