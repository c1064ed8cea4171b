import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import type { Outcome } from './apply-declarations.ts';
import { type DeclarationKind, type Members, ownerOf } from './declaration-kind.ts';
import { kindsInOrder } from './declaration-kinds.ts';
import type { Declaration } from './read-declarations.ts';

/** Whose things are pruned: the owner that was named, else the only one that the files name. Throws `validation-failed`. */
export const ownerToPrune = (asked: string | true, declared: readonly Declaration[]): string => {
  // An owner that a script has left empty would be nobody, and nothing would be pruned without a word.
  if (asked === '') throw new AcpError('validation-failed', '--prune has an empty owner: name one, or leave it out.');
  if (asked !== true) return asked;
  const owners = [...new Set(declared.flatMap(({ kind, members }) => ownerOf(kind, members) ?? []))];
  const [only, ...others] = owners;
  if (only !== undefined && others.length === 0) return only;
  const why = only === undefined ? 'name no owner' : `name several owners: ${owners.join(', ')}`;
  throw new AcpError('validation-failed', `The files ${why}. Say whose things are pruned: --prune OWNER.`);
};

interface Orphan {
  readonly kind: DeclarationKind;
  readonly name: string;
  readonly stored: Members;
}

const orphans = async (client: Client, owner: string, declared: readonly Declaration[]): Promise<readonly Orphan[]> => {
  const kept = new Set(declared.map(({ kind, name }) => `${kind.kind} ${name}`));
  const gone: Orphan[] = [];
  for (const kind of kindsInOrder.toReversed()) {
    for (const stored of await kind.list(client, null)) {
      const name = kind.nameOf(stored);
      if (ownerOf(kind, stored) === owner && !kept.has(`${kind.kind} ${name}`)) gone.push({ kind, name, stored });
    }
  }
  return gone;
};

const isGone = (error: unknown): boolean =>
  error instanceof AcpError && ['not-found', 'agent-not-found', 'skill-not-found'].includes(error.code);

/**
 * Deletes what carries the label of an owner and is in no file, what refers to others first. All of it is looked up before
 * anything is deleted.
 */
export const pruneDeclarations = async function* (
  client: Client,
  owner: string,
  declared: readonly Declaration[],
  isDryRun: boolean,
): AsyncGenerator<Outcome> {
  for (const { kind, name, stored } of await orphans(client, owner, declared)) {
    if (!isDryRun)
      await kind.remove(client, stored).catch((error: unknown) => {
        // Somebody else was faster.
        if (!isGone(error)) throw error;
      });
    const change = { before: kind.content(stored), after: null };
    yield { kind: kind.kind, name, action: 'deleted', version: null, file: null, line: null, change, exitCode: 0 };
  }
};
