import { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { type AgentResources, type ReadResource, resourceName } from '../../engine/context/index.ts';
import { cutBytes, type RemoteContent } from './remote-content.ts';
import type { ToolCatalog } from './tool-catalog.ts';

export interface AgentResourceDeps {
  readonly catalog: Pick<ToolCatalog, 'enabled' | 'row'>;
  readonly content: Pick<RemoteContent, 'resources' | 'readListed'>;
  /** Of one resource, and of all that one run reads. */
  readonly maxBytes: number;
  readonly maxTotalBytes: number;
  /** For all of them together, and never more than five seconds. */
  readonly timeoutMs: number;
  readonly log: Pick<Logger, 'warn'>;
}

// A run has no row before it knows what it begins with: nobody sees it meanwhile.
const longestReadMs = 5000;

/** Why a resource is left out, where no server has failed. */
class LeftOut extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(`Left out: ${reason}`);
    this.reason = reason;
  }
}

const reasonOf = (error: unknown): string => {
  if (error instanceof LeftOut) return error.reason;
  return error instanceof AcpError ? error.code : 'failed';
};

/**
 * What agents name of remote servers, as their runs begin with it. A server is asked once for its list; what cannot be had
 * is left out, since no run fails for what somebody else does not deliver.
 */
export const createAgentResources = (deps: AgentResourceDeps): AgentResources => {
  const { catalog, content, log } = deps;

  const serverOf = (tenantId: string, name: string): McpServerRow => {
    if (!catalog.enabled) throw new LeftOut('mcp-disabled');
    const row = catalog.row(tenantId, name);
    if (row === undefined) throw new LeftOut('no-server');
    if (row.enabled !== 1) throw new LeftOut('server-disabled');
    return row;
  };

  return {
    async read({ tenantId, runId, requestId, names, signal, openSpan }) {
      const until = AbortSignal.any([signal, AbortSignal.timeout(Math.min(deps.timeoutMs, longestReadMs))]);
      const asker = { signal: until, openSpan };
      const lists = new Map<string, ReturnType<RemoteContent['resources']>>();
      const textOf = async (name: string): Promise<string> => {
        const named = resourceName(name);
        if (named === null) throw new LeftOut('not-a-resource');
        const row = serverOf(tenantId, named.server);
        const listed = await lists.getOrInsertComputed(row.id, () => content.resources(row, asker));
        if (!listed.some(({ uri }) => uri === named.uri)) throw new LeftOut('resource-not-listed');
        const { text } = await content.readListed(row, named.uri, asker);
        if (text === null) throw new LeftOut('binary');
        return cutBytes(text, deps.maxBytes);
      };
      const texts = await Promise.allSettled(names.map(textOf));
      signal.throwIfAborted();
      const read: ReadResource[] = [];
      let left = deps.maxTotalBytes;
      for (const [index, name] of names.entries()) {
        const text = texts[index];
        const whole = text?.status === 'fulfilled' ? text.value : '';
        const kept = cutBytes(whole, left);
        left -= Buffer.byteLength(kept);
        if (text?.status === 'fulfilled' && (kept !== '' || whole === '')) {
          read.push({ name, content: kept });
          continue;
        }
        const error = text?.status === 'rejected' ? text.reason : new LeftOut('too-many-bytes');
        log.warn(
          {
            tenantId,
            runId,
            requestId,
            resource: name,
            reason: reasonOf(error),
            ...(error instanceof LeftOut ? {} : { err: error }),
          },
          'A resource that an agent names was left out',
        );
      }
      return read;
    },
  };
};
