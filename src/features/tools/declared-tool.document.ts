import { parseDuration } from '../../core/config/duration.ts';
import {
  type FieldPath,
  type FieldProblem,
  maxToolTimeoutMs,
  type ToolDefinition,
  type ToolEffect,
  toolEffects,
} from '../../engine/tools/index.ts';
import { isMembers, type Members, type Report, reportUnknown } from './declared-tool.fields.ts';
import { type PlanScope, readPlan } from './declared-tool.plan.ts';
import { callDeclaredTool, type RequestDeps } from './declared-tool.request.ts';

const fields = [
  'name',
  'description',
  'inputSchema',
  'effect',
  'safeToRepeat',
  'requiresApproval',
  'runsOnClient',
  'requiredPermission',
  'timeout',
  'maxOutputBytes',
  'request',
];

/** Members that a definition of code has by the same name; the registry checks them for both. */
const sharedMembers = [
  'name',
  'description',
  'inputSchema',
  'safeToRepeat',
  'requiresApproval',
  'runsOnClient',
  'requiredPermission',
  'maxOutputBytes',
] as const;

export interface DocumentDeps extends RequestDeps {
  readonly allowPrivate: boolean;
  scalarText(path: FieldPath): string | null;
}

const readEffect = (document: Members, report: Report): ToolEffect | undefined => {
  const word = document['effect'] ?? undefined;
  if (word === undefined) return undefined;
  const effect = toolEffects.find((name) => typeof word === 'string' && name.toLowerCase() === word.toLowerCase());
  if (effect === undefined) report(['effect'], `must be one of ${toolEffects.join(', ')}`);
  return effect;
};

const readTimeout = (document: Members, report: Report): number | undefined => {
  const text = document['timeout'];
  if (text === undefined || text === null) return undefined;
  const ms = typeof text === 'string' ? parseDuration(text) : undefined;
  if (ms !== undefined && ms >= 1 && ms <= maxToolTimeoutMs) return ms;
  report(['timeout'], 'must be a duration such as 500ms, 10s or 2m, at most 1d');
  return undefined;
};

const optional = <K extends string, V>(name: K, value: V | undefined): { readonly [P in K]?: V } =>
  value === undefined ? {} : ({ [name]: value } as { readonly [P in K]?: V });

export interface ReadDocument {
  /** Null when the document cannot become a tool at all; otherwise the registry checks the shared members too. */
  readonly definition: ToolDefinition | null;
  readonly problems: readonly FieldProblem[];
}

/** One document of a declared tool. Problems have paths from its root. */
export const readDeclaredTool = (document: unknown, deps: DocumentDeps): ReadDocument => {
  const problems: FieldProblem[] = [];
  const report: Report = (path, message) => problems.push({ path, message });
  if (!isMembers(document)) return { definition: null, problems: [{ path: [], message: 'must be a mapping' }] };
  reportUnknown(document, fields, [], report);
  const effect = readEffect(document, report);
  const timeoutMs = readTimeout(document, report);
  const scope: PlanScope = {
    inputSchema: document['inputSchema'],
    sendsIdempotencyKey: effect !== undefined && effect !== 'Read',
    allowPrivate: deps.allowPrivate,
    resolveReference: deps.resolveReference,
    scalarText: deps.scalarText,
    report,
  };
  const onClient = document['runsOnClient'] === true;
  if (onClient && document['request'] !== undefined)
    report(['request'], 'must be left out: the tool runs on the client');
  const plan = onClient ? null : readPlan(document['request'], ['request'], scope);
  const shared = Object.fromEntries(
    sharedMembers.filter((name) => (document[name] ?? null) !== null).map((name) => [name, document[name]]),
  );
  const execute: NonNullable<ToolDefinition['execute']> = async (args, context) => {
    if (plan === null) throw new Error('The request of this tool was not readable.');
    return callDeclaredTool(plan, args, context, deps);
  };
  const definition = {
    // The registry reports what is missing here, with the place of the document.
    ...(shared as unknown as Pick<ToolDefinition, 'name' | 'description' | 'inputSchema'>),
    ...optional('effect', effect),
    ...optional('timeoutMs', timeoutMs),
    ...optional('execute', onClient ? undefined : execute),
  };
  return { definition, problems };
};
