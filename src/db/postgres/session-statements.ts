import { randomBytes } from 'node:crypto';
import type { ClientBase } from 'pg';

// A kept statement of many rows takes some 100 KB of its server process.
const mostKept = 128;
const longestKept = 8000;
const mostSeen = 500;
// A plan that was made while a table was small may be a poor one soon after, and the server looks at it again only when it
// has new statistics. What grows takes ever longer to become twice as large.
const firstRenewMs = 2000;
const lastRenewMs = 60_000;

/** How a statement is sent. */
export interface Naming {
  /** Empty: the server keeps nothing. */
  readonly name: string;
  /** The server has to be told the text with it. */
  readonly isNew: boolean;
  /** A name that is not used any more. */
  readonly drops: string | null;
}

const unnamed: Naming = { name: '', isNew: true, drops: null };

/** Statements that the server keeps for one session, so that it reads and plans them once in a while and not each time. */
export class SessionStatements {
  readonly #kept = new Map<string, { readonly naming: Naming; readonly since: number; readonly forMs: number }>();
  readonly #seen = new Set<string>();
  // Where the session turns out to be another one, a name is unknown there, and never the statement of somebody else.
  readonly #prefix = `acp_${randomBytes(6).toString('hex')}_`;
  #count = 0;

  /** Under what the text is sent; `now` in milliseconds of a clock that only goes on. */
  named(text: string, now: number): Naming {
    const kept = this.#kept.get(text);
    if (kept !== undefined && now - kept.since < kept.forMs) return kept.naming;
    if (kept === undefined) {
      if (this.#kept.size >= mostKept || text.length > longestKept) return unnamed;
      // Lists vary in length: most of their texts never come again.
      if (!this.#seen.has(text)) {
        if (this.#seen.size >= mostSeen) this.#seen.clear();
        this.#seen.add(text);
        return unnamed;
      }
    }
    // Each name once in a session: what became of one in a message that failed is not known.
    this.#count += 1;
    const name = `${this.#prefix}${this.#count}`;
    const forMs = kept === undefined ? firstRenewMs : Math.min(kept.forMs * 2, lastRenewMs);
    this.#kept.set(text, { naming: { name, isNew: false, drops: null }, since: now, forMs });
    return { name, isNew: true, drops: kept?.naming.name ?? null };
  }

  /** It is not known whether the server has it. */
  forget(text: string): void {
    this.#kept.delete(text);
  }
}

const sessions = new WeakMap<ClientBase, SessionStatements>();

/** Null: the connection is not known to lead to one session. */
export const statementsOf = (client: ClientBase): SessionStatements | null => sessions.get(client) ?? null;

/** The session is another one than it was: nothing is kept there from here on. */
export const leaveSession = (client: ClientBase): void => void sessions.delete(client);

/**
 * Finds out whether the connection leads to the server itself. A pooler that lends its connections gives clients numbers of
 * its own when they connect; the server gives that of the process which answers from then on. Until it is known, and where
 * it is not, statements are unnamed.
 */
export const recogniseSession = async (client: ClientBase): Promise<boolean> => {
  const { rows } = await client.query<{ pid: number }>('select pg_catalog.pg_backend_pid() as pid');
  const announced = (client as unknown as { readonly processID: number | null }).processID;
  const isSession = announced !== null && rows[0]?.pid === announced;
  if (isSession) sessions.set(client, new SessionStatements());
  return isSession;
};
