import { AcpError, toProblem } from '../../contract/errors.ts';
import type { RpcParams } from '../../contract/json-rpc.ts';
import { isForEverybody, isRead, type Operation, wholeBody } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import { requireAuthority } from '../../core/caller/authority.ts';
import type { IncomingCall } from '../../core/caller/incoming-call.ts';
import type { CallContext } from '../../core/context.ts';
import type { Dispatch, OperationEntry, Reply } from '../../core/dispatch.ts';
import { nullsAsAbsent } from '../../core/null-members.ts';
import { type McpTool, type McpToolResult, textContent } from './mcp-tool.ts';
import { mcpToolName } from './mcp-tool-names.rules.ts';

export type ControlPlaneMode = 'Off' | 'Read' | 'Write';

/** Which operations can be said in one JSON message and answered by one. */
const isOffered = ({ id, operation }: OperationEntry, mode: ControlPlaneMode): boolean => {
  // Who calls a tool has found the endpoint.
  if (id.startsWith('mcpEndpoint.')) return false;
  if (operation.signed === true || operation.ownProtocol === true) return false;
  if (operation.upload !== undefined || operation.download !== undefined || operation.page === true) return false;
  // A stream is no answer of a tool; a run can be asked for without one.
  if (operation.stream !== undefined && !hasStreamSwitch(operation)) return false;
  return mode === 'Write' || isRead(operation);
};

const membersOf = (schema: object | undefined): Readonly<Record<string, Json>> =>
  ((schema as { properties?: Record<string, Json> } | undefined)?.properties ?? {}) as Record<string, Json>;
const requiredOf = (schema: object | undefined): readonly string[] =>
  (schema as { required?: string[] } | undefined)?.required ?? [];

/** Clients show titles to people, and descriptions alone to models: what a tool does has to stand there, too. */
const descriptionOf = ({ summary, description }: Operation): string =>
  description === undefined ? `${summary}.` : `${summary}. ${description}`;

const hasStreamSwitch = ({ body }: Operation): boolean => Object.hasOwn(membersOf(body), 'stream');

const inputSchema = ({ params, query, body }: Operation): Json => ({
  type: 'object',
  properties: {
    ...membersOf(params),
    ...membersOf(query),
    ...(body === undefined ? {} : { body: body as unknown as Json }),
  },
  required: [
    ...requiredOf(params),
    ...requiredOf(query),
    ...(body === undefined || Object.hasOwn(body, '~optional') ? [] : ['body']),
  ],
  additionalProperties: false,
});

/** Throws for an argument that the operation does not have: left out of a call, it would change what is asked for. */
const checkArguments = ({ params, query, body }: Operation, args: RpcParams): void => {
  const known = new Set([...Object.keys(membersOf(params)), ...Object.keys(membersOf(query))]);
  if (body !== undefined) known.add('body');
  const inBody = membersOf(body);
  const errors = Object.keys(args)
    .filter((name) => !known.has(name))
    .map((path) => ({
      path,
      message: Object.hasOwn(inBody, path) ? 'is a member of body, and no argument beside it' : 'is no argument',
    }));
  if (body !== undefined && !Object.hasOwn(body, '~optional') && (args['body'] ?? null) === null)
    errors.push({ path: 'body', message: 'is required' });
  const [first] = errors;
  if (first !== undefined)
    throw new AcpError('validation-failed', `${first.path} ${first.message}.`, { details: { errors } });
};

const holds = ({ principal }: Pick<CallContext, 'principal'>, { operation }: OperationEntry): boolean => {
  if (isForEverybody(operation) || operation.role === null) return true;
  try {
    requireAuthority(principal, operation.role, operation.scope);
    return true;
  } catch (error) {
    if (error instanceof AcpError) return false;
    throw error;
  }
};

const pick = (args: RpcParams, names: readonly string[]): Record<string, Json> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = args[name];
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );

const texts = (values: Readonly<Record<string, Json>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === 'object' ? value : String(value)]),
  );

const answered = (body: unknown): McpToolResult => {
  const json = (body === undefined ? null : JSON.parse(JSON.stringify(body))) as Json;
  const isObject = typeof json === 'object' && json !== null && !Array.isArray(json);
  return {
    content: [textContent(json === null ? 'Done.' : JSON.stringify(json))],
    structuredContent: isObject ? (json as Readonly<Record<string, Json>>) : { result: json },
  };
};

export interface OperationToolDeps {
  readonly mode: ControlPlaneMode;
  /** Of the service that this is a part of; there once all of it is. */
  readonly dispatch: () => Pick<Dispatch, 'call' | 'entries'>;
}

/**
 * The operations of the service as tools, for those who may call them: each call takes the way of every call, with the
 * authority of its caller, limits aside, which the call of the tool has passed already.
 */
export const createOperationTools = ({ mode, dispatch }: OperationToolDeps) => {
  let offered: ReadonlyMap<string, OperationEntry> | null = null;
  const entriesByTool = (): ReadonlyMap<string, OperationEntry> => {
    offered ??= new Map(
      mode === 'Off'
        ? []
        : dispatch()
            .entries.filter((entry) => isOffered(entry, mode))
            .map((entry) => [mcpToolName(entry.id), entry]),
    );
    return offered;
  };

  const incoming = (context: CallContext, { operation }: OperationEntry, args: RpcParams): IncomingCall => {
    const { requestId, tenantId, principal, signal, trace } = context;
    const params = pick(args, Object.keys(membersOf(operation.params)));
    const body = operation.body === undefined ? null : nullsAsAbsent(operation.body)(args['body'] ?? null);
    const sent =
      body === null ? null : hasStreamSwitch(operation) && typeof body === 'object' ? { ...body, stream: false } : body;
    const bytes = sent === null ? null : Buffer.from(JSON.stringify(sent));
    return {
      requestId,
      signal,
      method: operation.method,
      path: operation.path.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(params[name] ?? ''))),
      trace,
      authenticate: () => ({ tenantId, principal }),
      readBody: () => bytes,
      received: (rawBody) => ({
        params: texts(params),
        query: texts(pick(args, Object.keys(membersOf(operation.query)))),
        headers: {},
        body: () => (rawBody === null ? undefined : JSON.parse(Buffer.from(rawBody).toString())),
      }),
    };
  };

  const call = async (context: CallContext, entry: OperationEntry, args: RpcParams): Promise<McpToolResult> => {
    const one = incoming(context, entry, args);
    try {
      checkArguments(entry.operation, args);
      const reply = await dispatch().call(entry, one);
      if ('stream' in reply || 'file' in reply) throw new Error(`The answer of ${entry.id} is none of a tool.`);
      return answered('parts' in reply ? await wholeBody(reply.parts) : (reply as Reply).body);
    } catch (error) {
      if (!(error instanceof AcpError) || error.code === 'internal') throw error;
      const problem = toProblem(error, one.path, context.requestId);
      return { ...answered(problem), isError: true };
    }
  };

  const toolOf = (name: string, entry: OperationEntry): McpTool => {
    const { operation } = entry;
    const reads = isRead(operation);
    return {
      shape: {
        name,
        title: operation.summary,
        description: descriptionOf(operation),
        inputSchema: inputSchema(operation),
        annotations: { readOnlyHint: reads, destructiveHint: !reads, openWorldHint: false },
      },
      call: async (context, args) => ({ kind: 'result', result: await call(context, entry, args) }),
    };
  };

  return {
    list: (context: CallContext): readonly McpTool[] =>
      [...entriesByTool()].filter(([, entry]) => holds(context, entry)).map(([name, entry]) => toolOf(name, entry)),
    /** Null for one that this caller may not call, too. */
    find(context: CallContext, name: string): McpTool | null {
      const entry = entriesByTool().get(name);
      return entry === undefined || !holds(context, entry) ? null : toolOf(name, entry);
    },
  };
};

export type OperationTools = ReturnType<typeof createOperationTools>;
