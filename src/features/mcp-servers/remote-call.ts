import type { Json } from '../../contract/schema.ts';
import type { Logger } from '../../core/logger.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import {
  argumentsChecker,
  type BuiltInCall,
  maxToolTimeoutMs,
  outputLimit,
  type RegisteredTool,
  readForeignSchema,
  registeredTool,
  type ToolContext,
  type ToolEffect,
  ToolQuestions,
  ToolStop,
  toolEffects,
  truncateOutput,
} from '../../engine/tools/index.ts';
import { failureNumber, failureType, McpFailure } from '../../providers/mcp/mcp-failure.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { mirroredArguments, parameterHeaders } from '../../providers/mcp/wire/parameter-headers.ts';
import { type Connections, settingsOf } from './connections.ts';
import { withoutDefaulted } from './defaulted-members.ts';
import type { ListedTool } from './listed-tools.ts';
import type { McpTelemetry } from './mcp-telemetry.ts';
import type { Admitted } from './pins.ts';
import { resultText } from './remote-result.ts';
import { callInRounds } from './remote-rounds.ts';
import { visibleSchema } from './visible-schema.ts';

export interface RemoteCallDeps {
  readonly connections: Pick<Connections, 'to'>;
  /** The record as it is now; undefined: there is none of this name. */
  readonly current: (tenantId: string, server: string) => McpServerRow | undefined;
  readonly telemetry: McpTelemetry;
  /** `Tools:DefaultMaxOutputBytes`. */
  readonly maxOutputBytes: number | null;
  readonly log: Pick<Logger, 'warn'>;
}

/** What a tool does, by what its server says of it; an operator may know better. */
const effectOf = ({ annotations }: Pick<ListedTool, 'annotations'>): ToolEffect => {
  const hints = (annotations ?? {}) as Readonly<Record<string, unknown>>;
  if (hints['readOnlyHint'] === true) return 'Read';
  if (hints['destructiveHint'] === true) return 'Destructive';
  return hints['destructiveHint'] === false && hints['openWorldHint'] === false ? 'Write' : 'External';
};

/** What may be said of a failure beyond this process: whose it is, and a number. */
const failureText = (server: string, failure: McpFailure): string => {
  const number = failureNumber(failure);
  if (number !== null) return `Tool failed: ${server} answered ${number}`;
  if (failure.kind === 'broken') return `Tool failed: ${server} gave no valid answer`;
  if (failure.kind === 'missing-credential') return `Tool failed: the credential of ${server} has no value`;
  return `Tool failed: ${server} did not answer`;
};

const notAvailable = (server: string): ToolStop => new ToolStop('failed', `Tool failed: ${server} is not available`);

/** A question is no error. */
const errorTypeOf = (error: unknown): string | null => {
  if (error instanceof ToolQuestions) return null;
  if (error instanceof McpFailure) return failureType(error);
  return error instanceof ToolStop ? 'refused' : 'internal';
};

/** Makes the body of a tool: a call of its server. */
const callOf = (server: McpServerRow, { tool, isCallable }: Admitted, deps: RemoteCallDeps) => {
  const mirrored = mirroredArguments(tool.inputSchema) ?? [];
  const send = async (args: Json, context: ToolContext, call: BuiltInCall) => {
    const row = deps.current(server.tenant_id, server.name);
    if (row === undefined || row.id !== server.id || row.enabled !== 1) throw notAvailable(server.name);
    const client = deps.connections.to(row);
    const limits = { signal: context.signal, timeoutMs: maxToolTimeoutMs };
    const { endpoint } = settingsOf(row);
    const about = { tool: tool.name };
    const exchange = deps.telemetry.exchange({ name: server.name, endpoint }, 'tools/call', call.openSpan, about);
    let errorType: string | null = null;
    try {
      const session = await client.session(limits);
      exchange.speaks(session.version);
      return await callInRounds({
        ...{ client, session, endpoint, call },
        server: server.name,
        params: { name: tool.name, arguments: args },
        options: {
          ...limits,
          name: tool.name,
          parameterHeaders: parameterHeaders(mirrored, args),
          trace: exchange.trace,
        },
      });
    } catch (error) {
      errorType = errorTypeOf(error);
      throw error;
    } finally {
      exchange.end(errorType);
    }
  };
  return async (args: Json, context: ToolContext, call: BuiltInCall): Promise<string> => {
    if (!isCallable)
      throw new ToolStop(
        'failed',
        `Tool failed: ${visibleText(tool.name)} of ${server.name} is not as it was approved`,
      );
    let result: Awaited<ReturnType<typeof send>>;
    try {
      result = await send(args, context, call);
    } catch (error) {
      if (!(error instanceof McpFailure)) throw error;
      const { runId } = context;
      deps.log.warn(
        {
          requestId: call.requestId,
          runId,
          server: server.name,
          tool: tool.name,
          error: failureType(error),
          err: error,
        },
        'A call of a remote tool failed',
      );
      throw new ToolStop('failed', failureText(server.name, error));
    }
    const text = await resultText(result, context);
    if (result['isError'] !== true) return text;
    throw new ToolStop('failed', truncateOutput(text, outputLimit(null, deps.maxOutputBytes)).text);
  };
};

/** A remote tool as agents have it. */
export const remoteTool = (
  server: McpServerRow,
  name: string,
  admitted: Admitted,
  deps: RemoteCallDeps,
): RegisteredTool => {
  const { tool } = admitted;
  const settings = settingsOf(server);
  const read = readForeignSchema(tool.inputSchema);
  if ('problem' in read) throw new Error(`The tool ${name} was listed although its schema cannot be read.`);
  const chosen = Object.hasOwn(settings.effects, tool.name) ? settings.effects[tool.name] : undefined;
  const effect = toolEffects.find((word) => word === chosen) ?? effectOf(tool);
  const inputSchema = visibleSchema(read.schema) as Json;
  const registered = registeredTool(
    {
      name,
      description: visibleText(tool.description ?? tool.title ?? `The tool ${tool.name} of ${server.name}.`),
      inputSchema,
      effect,
      requiresApproval: settings.requiresApproval,
    },
    { kind: 'Mcp', source: server.name, resultSource: 'RemoteTool', body: callOf(server, admitted, deps) },
  );
  const asked = withoutDefaulted(inputSchema) as Json;
  return { ...registered, checkArguments: argumentsChecker(asked, { recursion: 'through-members' }) };
};
