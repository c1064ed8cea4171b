import { isRecord } from '../../contract/record.ts';
import { inputSchemaProblems } from './input-schema.ts';
import { toolEffects } from './tool.ts';
import { minOutputBytes } from './tool-output.ts';
import type { FieldProblem } from './tool-problem.ts';

/** Names that the service gives its own tools; a host's tool may not take one. */
const builtInToolNames: ReadonlySet<string> = new Set([
  'todo_list',
  'todo_write',
  'file_list',
  'file_read',
  'file_write',
  'file_delete',
  'file_search',
  'set_mode',
  'tools_find',
  'tools_call',
  'search_knowledge',
  'load_skill',
  'read_skill_resource',
  'run_skill_script',
  'generate_image',
  'speak',
  'transcribe',
  'list_voices',
]);

/** Prefix of the tools that call another agent. */
const agentToolPrefix = 'call_';

/** Whether the service itself gives tools such a name. */
export const isServiceToolName = (name: string): boolean =>
  builtInToolNames.has(name) || name.startsWith(agentToolPrefix);

export const maxToolTimeoutMs = 86_400_000;

const toolName = /^[A-Za-z0-9_-]{1,64}$/;

type Check = (value: unknown) => string | null;

const expect =
  (fits: (value: unknown) => boolean, message: string): Check =>
  (value) =>
    value === undefined || fits(value) ? null : message;

const isBoolean = (value: unknown): boolean => typeof value === 'boolean';
const isFunction = (value: unknown): boolean => typeof value === 'function';
const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';
const isWithin =
  (least: number, most: number) =>
  (value: unknown): boolean =>
    Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most;

const checkName: Check = (value) => {
  if (typeof value !== 'string' || !toolName.test(value)) return 'must be 1 to 64 of A-Z a-z 0-9 _ -';
  if (builtInToolNames.has(value)) return 'is the name of a built-in tool';
  if (value.startsWith(agentToolPrefix)) return `must not start with ${agentToolPrefix}, which names callable agents`;
  return null;
};

/** Every member of a definition. `inputSchema` has its own check. */
const members: Readonly<Record<string, Check>> = {
  name: checkName,
  description: (value) => (isText(value) ? null : 'must be text that is not empty'),
  inputSchema: () => null,
  effect: expect((value) => toolEffects.some((effect) => effect === value), `must be one of ${toolEffects.join(', ')}`),
  requiresApproval: expect(isBoolean, 'must be true or false'),
  requiredPermission: expect((value) => value === null || isText(value), 'must be the name of a permission, or null'),
  runsOnClient: expect(isBoolean, 'must be true or false'),
  timeoutMs: expect(isWithin(1, maxToolTimeoutMs), `must be a whole number from 1 to ${maxToolTimeoutMs}`),
  maxOutputBytes: expect(
    isWithin(minOutputBytes, Number.MAX_SAFE_INTEGER),
    `must be a whole number from ${minOutputBytes} up`,
  ),
  safeToRepeat: expect(isBoolean, 'must be true or false'),
  validate: expect(isFunction, 'must be a function'),
  execute: () => null,
};

/** A client-side tool is a declaration; every other one has a body. */
const bodyProblem = ({ runsOnClient, execute }: Readonly<Record<string, unknown>>): string | null => {
  if (runsOnClient === true) return execute === undefined ? null : 'must be left out: the tool runs on the client';
  return isFunction(execute) ? null : 'must be a function';
};

const schemaProblems = (schema: unknown): FieldProblem[] => {
  let copy: unknown;
  try {
    copy = JSON.parse(JSON.stringify(schema ?? null));
  } catch {
    return [{ path: ['inputSchema'], message: 'must be a JSON value without cycles' }];
  }
  return inputSchemaProblems(copy, 'through-members').map(({ path, message }) => ({
    path: ['inputSchema', ...path],
    message,
  }));
};

/** Everything that keeps a definition from being registered. Takes any value: modules are not type-checked at run time. */
export const definitionProblems = (definition: unknown): FieldProblem[] => {
  if (!isRecord(definition)) return [{ path: [], message: 'must be an object' }];
  const body = bodyProblem(definition);
  const unknown = Object.keys(definition).filter((name) => !Object.hasOwn(members, name));
  return [
    ...unknown.map((name) => ({ path: [name], message: 'is not a known member of a tool' })),
    ...Object.entries(members).flatMap(([name, check]) => {
      const message = check(definition[name]);
      return message === null ? [] : [{ path: [name], message }];
    }),
    ...(body === null ? [] : [{ path: ['execute'], message: body }]),
    ...schemaProblems(definition['inputSchema']),
  ];
};
