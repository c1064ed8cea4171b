import { AcpError, invalidField } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { sha256 } from './listed-tools.ts';
import type { mcpServerOperations } from './mcp-servers.operations.ts';
import { assertEnabled } from './mcp-servers.service.ts';
import type { McpServerStore } from './mcp-servers.store.ts';
import { noServer } from './mcp-servers.view.ts';
import type { RemoteContent } from './remote-content.ts';

export interface RemoteContentServiceDeps {
  readonly store: Pick<McpServerStore, 'find'>;
  readonly content: RemoteContent;
  readonly enabled: boolean;
}

/** Prompts and resources, asked of their servers. */
export const remoteContentService = ({
  store,
  content,
  enabled,
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
  return {
    prompts: async ({ tenantId }, { params }) => ok([...(await content.prompts(await usable(tenantId, params.name)))]),

    async prompt({ tenantId }, { params, body }) {
      const row = await usable(tenantId, params.name);
      const prompt = (await content.prompts(row)).find(({ name }) => name === params.prompt);
      if (prompt === undefined)
        throw new AcpError('not-found', `The MCP server "${row.name}" has no prompt of this name.`);
      const given = body?.arguments ?? {};
      const missing = prompt.arguments.find(({ name, required }) => required && !Object.hasOwn(given, name));
      if (missing !== undefined) throw invalidField(`arguments.${missing.name}`, 'is required');
      const text = await content.promptText(row, prompt.name, given);
      return ok({ text, hash: sha256(text) });
    },

    resources: async ({ tenantId }, { params }) =>
      ok([...(await content.resources(await usable(tenantId, params.name)))]),

    readResource: async ({ tenantId }, { params, query }) =>
      ok(await content.resource(await usable(tenantId, params.name), query.uri)),
  };
};
