import { closest, distance } from 'fastest-levenshtein';
import { isRecord } from '../../contract/record.ts';
import type { SchemaShape } from './agents.content.ts';
import { error, type Finding, quoted } from './agents.findings.ts';
import { AgentDefinitionRequest } from './agents.schema.ts';

/** Members of a stored definition that a body may bring back; they are ignored. */
const readOnlyMembers = new Set(['origin', 'version', 'tenantId', 'updatedAt', 'updatedBy', 'restoredFrom']);

// More than this in one object is no typo any more, and each suggestion costs a comparison with every known name.
const maxPerObject = 50;
const longestTypo = 40;
const largestTypoDistance = 3;

const suggestion = (name: string, names: readonly string[]): string => {
  if (name.length > longestTypo || names.length === 0) return '';
  const nearest = closest(name, names);
  return distance(name, nearest) <= largestTypoDistance ? ` Did you mean ${nearest}?` : '';
};

const walk = (schema: SchemaShape, value: unknown, path: string, findings: Finding[]): void => {
  if (schema.items !== undefined && Array.isArray(value)) {
    const { items } = schema;
    for (const [index, item] of value.entries()) walk(items, item, `${path}[${index}]`, findings);
    return;
  }
  if (schema.properties === undefined || !isRecord(value)) return;
  const names = Object.keys(schema.properties);
  let unknown = 0;
  for (const [name, member] of Object.entries(value)) {
    const below = path === '' ? name : `${path}.${name}`;
    const memberSchema = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    if (memberSchema !== undefined) walk(memberSchema, member, below, findings);
    else if (!(path === '' && readOnlyMembers.has(name))) {
      unknown += 1;
      if (unknown > maxPerObject) continue;
      const message = `${quoted(name)} is not a known field.${suggestion(name, names)}`;
      findings.push(error('unknown-field', below.slice(0, 256), message));
    }
  }
};

/** A finding for every member, at any level, that the schema of the body does not have. */
export const unknownFieldFindings = (body: unknown): readonly Finding[] => {
  const findings: Finding[] = [];
  walk(AgentDefinitionRequest as SchemaShape, body, '', findings);
  return findings;
};
