import type { FieldError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import { nearestName } from '../../core/nearest-name.ts';
import type { SchemaShape } from './agents.content.ts';
import { error, type Finding, fieldErrors, quoted } from './agents.findings.ts';
import { AgentDefinitionRequest } from './agents.schema.ts';

/** Members of a stored definition that a body may bring back; they are ignored. */
const readOnlyMembers = new Set(['origin', 'version', 'tenantId', 'updatedAt', 'updatedBy', 'restoredFrom']);

// More than this in one object is no typo any more, and each suggestion costs a comparison with every known name.
const maxPerObject = 50;

const suggestion = (name: string, names: readonly string[]): string => {
  const nearest = nearestName(name, names);
  return nearest === null ? '' : ` Did you mean ${nearest}?`;
};

const walk = (schema: SchemaShape, value: unknown, path: string, findings: Finding[], limit: number): void => {
  if (findings.length >= limit) return;
  if (schema.items !== undefined && Array.isArray(value)) {
    const { items } = schema;
    for (const [index, item] of value.entries()) walk(items, item, `${path}[${index}]`, findings, limit);
    return;
  }
  if (schema.properties === undefined || !isRecord(value)) return;
  const names = Object.keys(schema.properties);
  let unknown = 0;
  for (const [name, member] of Object.entries(value)) {
    const below = path === '' ? name : `${path}.${name}`;
    const memberSchema = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (memberSchema !== undefined) walk(memberSchema, member, below, findings, limit);
    else if (!(path === '' && readOnlyMembers.has(name))) {
      unknown += 1;
      if (unknown > maxPerObject) continue;
      const message = `${quoted(name)} is not a known field.${suggestion(name, names)}`;
      findings.push(error('unknown-field', below.slice(0, 256), message));
    }
  }
};

const findingsWithin = (body: unknown, limit: number): readonly Finding[] => {
  const findings: Finding[] = [];
  walk(AgentDefinitionRequest as SchemaShape, body, '', findings, limit);
  return findings;
};

/** A finding for every property, at any level, that the schema of the body does not have. */
export const unknownFieldFindings = (body: unknown): readonly Finding[] =>
  findingsWithin(body, Number.POSITIVE_INFINITY);

// The lists of a body that does not fit the schema may have any length.
const maxOfMisfit = 50;

/** The same for a body that does not fit the schema, which no other rule checks. */
const unknownFieldErrors = (body: unknown): readonly FieldError[] => fieldErrors(findingsWithin(body, maxOfMisfit));

/** By the operations that take a definition. */
export const agentBodyErrors = {
  'agents.create': unknownFieldErrors,
  'agents.save': unknownFieldErrors,
  'agents.validate': unknownFieldErrors,
} as const;
