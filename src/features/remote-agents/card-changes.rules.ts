import { isRecord } from '../../contract/record.ts';
import { cutText } from '../../engine/tools/index.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import type { RemoteAgentPinReport } from './remote-agents.schema.ts';

type Change = RemoteAgentPinReport['changes'][number];

const maxShown = 2000;

const shown = (text: string | undefined): string | null =>
  text === undefined ? null : cutText(visibleText(text), maxShown);

/** Every value of a document that holds no other, by its JSON Pointer. */
const leaves = (value: unknown, path = '', into = new Map<string, string>()): ReadonlyMap<string, string> => {
  const members: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? [...value.entries()]
    : isRecord(value)
      ? Object.entries(value)
      : [];
  if (members.length === 0) into.set(path, JSON.stringify(value));
  for (const [name, member] of members)
    leaves(member, `${path}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`, into);
  return into;
};

/** What of a card is not as it was, value by value; without one before, all of it was added. */
export const cardChanges = (before: string | null, after: string): readonly Change[] => {
  const old = before === null ? new Map<string, string>() : leaves(JSON.parse(before));
  const now = leaves(JSON.parse(after));
  return [...new Set([...old.keys(), ...now.keys()])].sort().flatMap((path): readonly Change[] => {
    const [was, is] = [old.get(path), now.get(path)];
    if (was === is) return [];
    const change = was === undefined ? 'Added' : is === undefined ? 'Removed' : 'Changed';
    return [{ path: visibleText(path), change, before: shown(was), after: shown(is) }];
  });
};
