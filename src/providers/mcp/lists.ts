import { McpFailure } from './mcp-failure.ts';
import type { McpClient, McpRequestOptions } from './mcp-target.ts';
import { serverNameIn } from './server-name.ts';

export interface WholeList {
  readonly entries: readonly unknown[];
  /** How long the server says that its list stays as it is; null: it does not. */
  readonly ttlMs: number | null;
  /** What the server calls itself in its answers; null: it does not say. */
  readonly serverName: string | null;
  /** False: there may be more, which were not asked for. */
  readonly isComplete: boolean;
}

// A server whose cursor never ends is no reason to read for ever.
const maxPages = 200;

const ttlOf = (value: unknown): number | null =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : null;

/** All pages of a list, in the server's order, up to `maxEntries`. The time limit is for all of them. */
export const wholeList = async (
  client: Pick<McpClient, 'request'>,
  kind: 'tools' | 'prompts' | 'resources',
  { maxEntries, ...options }: McpRequestOptions & { readonly maxEntries: number },
): Promise<WholeList> => {
  const endsAt = performance.now() + options.timeoutMs;
  const entries: unknown[] = [];
  const seen = new Set<string>();
  let ttlMs: number | null = null;
  let serverName: string | null = null;
  let cursor: string | null = null;
  for (let page = 0; page < maxPages && entries.length < maxEntries; page += 1) {
    const timeoutMs = Math.max(1, Math.ceil(endsAt - performance.now()));
    const result = await client.request(`${kind}/list`, cursor === null ? {} : { cursor }, { ...options, timeoutMs });
    const listed = result[kind];
    if (!Array.isArray(listed)) throw new McpFailure('broken');
    for (const entry of listed) entries.push(entry);
    serverName = serverNameIn(result) ?? serverName;
    const ttl = ttlOf(result['ttlMs']);
    ttlMs = page === 0 ? ttl : ttl === null || ttlMs === null ? null : Math.min(ttl, ttlMs);
    const next: unknown = result['nextCursor'];
    if (typeof next !== 'string' || next === '')
      return { entries: entries.slice(0, maxEntries), ttlMs, serverName, isComplete: entries.length <= maxEntries };
    if (seen.has(next)) break;
    seen.add(next);
    cursor = next;
  }
  return { entries: entries.slice(0, maxEntries), ttlMs, serverName, isComplete: false };
};
