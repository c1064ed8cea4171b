import { isRecord } from '../../contract/record.ts';
import { yamlText } from '../output/definition-yaml.ts';
import { unifiedDiff } from '../output/unified-diff.ts';
import type { Outcome } from './apply-declarations.ts';
import type { DeclarationKind, Members } from './declaration-kind.ts';

/** What is stored, as a document of it says it. */
export const declarationOf = (kind: DeclarationKind, stored: Members): Members => ({
  kind: kind.kind,
  ...kind.content(stored),
});

/** Documents that can be applied again. */
export const declarationsYaml = (declarations: readonly Members[], forTerminal: boolean): string =>
  declarations.map((declaration) => yamlText(declaration, forTerminal)).join('---\n');

// Values of headers are shown nowhere.
const masked = (members: Members): Members =>
  isRecord(members['headers'])
    ? { ...members, headers: Object.fromEntries(Object.keys(members['headers']).map((name) => [name, '***'])) }
    : members;

const yamlOf = (kind: string | null, members: Members | null, forTerminal: boolean): string =>
  members === null ? '' : yamlText({ kind, ...(kind === 'Webhook' ? masked(members) : members) }, forTerminal);

/** A value with the properties of its objects in the order of another one: order says nothing, and a diff would show it. */
const inOrderOf = (value: unknown, other: unknown): unknown => {
  if (Array.isArray(value))
    return value.map((item, index) => inOrderOf(item, Array.isArray(other) ? other[index] : undefined));
  if (!isRecord(value)) return value;
  const known = isRecord(other) ? Object.keys(other).filter((name) => Object.hasOwn(value, name)) : [];
  const names = [...known, ...Object.keys(value).filter((name) => !known.includes(name))];
  return Object.fromEntries(
    names.map((name) => [name, inOrderOf(value[name], isRecord(other) ? other[name] : undefined)]),
  );
};

/** What changes, as lines of a unified diff; none where nothing does, or nothing that is shown. */
export const outcomeDiff = ({ kind, name, file, change }: Outcome, forTerminal: boolean): readonly string[] => {
  if (change === undefined) return [];
  const before = yamlOf(kind, change.before, forTerminal);
  const after = yamlOf(kind, inOrderOf(change.after, change.before) as Members | null, forTerminal);
  const stored = `${kind} ${name} (stored)`;
  return unifiedDiff(
    before,
    after,
    change.before === null ? '/dev/null' : stored,
    change.after === null ? '/dev/null' : (file ?? ''),
  );
};
