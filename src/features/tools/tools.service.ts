import { ok } from '../../contract/operation.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RegisteredTool, ToolRegistry } from '../../engine/tools/index.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import type { ToolUsageStore } from './tool-usage.store.ts';
import type { toolOperations } from './tools.operations.ts';
import type { ToolDescriptor } from './tools.schema.ts';

const describe = ({ descriptor }: RegisteredTool): ToolDescriptor => ({ ...descriptor });

export interface ToolServiceDeps {
  readonly tools: Pick<ToolRegistry, 'list'>;
  readonly remoteTools: Pick<RemoteTools, 'ready' | 'list'>;
  readonly usage: ToolUsageStore;
  readonly authorization: RunAuthorization;
}

const defaultRows = 50;
const maxRows = 200;

export const toolService = ({
  tools,
  remoteTools,
  usage,
  authorization,
}: ToolServiceDeps): Handlers<typeof toolOperations> => {
  // The registry is fixed until restart.
  const descriptors = tools.list().map(describe);
  return {
    async list({ tenantId }) {
      await remoteTools.ready(tenantId);
      const remote = remoteTools.list(tenantId).map(describe);
      if (remote.length === 0) return ok(descriptors);
      return ok([...descriptors, ...remote].sort((a, b) => (a.name < b.name ? -1 : 1)));
    },
    async usage(context, { query }) {
      await authorization.require(context, 'List', { resource: 'Run' });
      const after = query.startedAfter === undefined ? null : Date.parse(query.startedAfter);
      const limit = Math.min(Math.max(query.maxTools ?? defaultRows, 1), maxRows);
      const rows = await usage.byTool(context.tenantId, after, limit);
      return ok(
        rows.map((row) => {
          const totalCalls = Number(row.total);
          const failedCalls = totalCalls - Number(row.succeeded);
          return {
            toolName: row.tool_name,
            totalCalls,
            failedCalls,
            errorRate: totalCalls === 0 ? null : failedCalls / totalCalls,
            averageDurationMs: row.duration === null ? null : Number(row.duration),
            lastCalledAt: row.last === null ? null : isoTime(Number(row.last)),
          };
        }),
      );
    },
  };
};
