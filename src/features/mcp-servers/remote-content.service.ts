import { AcpError, invalidField } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { sha256 } from './listed-tools.ts';
import type { mcpServerOperations } from './mcp-servers.operations.ts';
import { assertEnabled } from './mcp-servers.service.ts';
import type { McpServerStore } from './mcp-servers.store.ts';
import { noServer } from './mcp-servers.view.ts';
import type { McpTelemetry } from './mcp-telemetry.ts';
import type { RemoteContent } from './remote-content.ts';

export interface RemoteContentServiceDeps {
  readonly store: Pick<McpServerStore, 'find'>;
  readonly content: RemoteContent;
  readonly enabled: boolean;
  readonly telemetry: Pick<McpTelemetry, 'spansBelow'>;
}

/** Prompts and resources, asked of their servers. */
export const remoteContentService = ({
  store,
  content,
  enabled,
  telemetry,
}: RemoteContentServiceDeps): Pick<
  Handlers<typeof mcpServerOperations>,
  'prompts' | 'prompt' | 'resources' | 'readResource'
> => {
  const usable = async (tenantId: string, name: string): Promise<McpServerRow> => {
    assertEnabled(enabled);
    const row = await store.find(tenantId, name);
    if (row === undefined) throw noServer(name);
    if (row.enabled !== 1) throw new AcpError('mcp-server-disabled', `The MCP server "${name}" is disabled.`);
    return row;
  };
  const askerOf = ({ trace = null, signal }: CallContext) => ({ signal, openSpan: telemetry.spansBelow(trace) });
  return {
    async prompts(context, { params }) {
      return ok([...(await content.prompts(await usable(context.tenantId, params.name), askerOf(context)))]);
    },

    async prompt(context, { params, body }) {
      const row = await usable(context.tenantId, params.name);
      const asker = askerOf(context);
      const prompt = (await content.prompts(row, asker)).find(({ name }) => name === params.prompt);
      if (prompt === undefined)
        throw new AcpError('not-found', `The MCP server "${row.name}" has no prompt of this name.`);
      const given = body?.arguments ?? {};
      const missing = prompt.arguments.find(({ name, required }) => required && !Object.hasOwn(given, name));
      if (missing !== undefined) throw invalidField(`arguments.${missing.name}`, 'is required');
      const text = await content.promptText(row, prompt.name, given, asker);
      return ok({ text, hash: sha256(text) });
    },

    async resources(context, { params }) {
      return ok([...(await content.resources(await usable(context.tenantId, params.name), askerOf(context)))]);
    },

    async readResource(context, { params, query }) {
      const row = await usable(context.tenantId, params.name);
      return ok(await content.resource(row, query.uri, askerOf(context)));
    },
  };
};
