import { defineStore, deletesRow, type StoreOf } from '../../db/define-store.ts';
import { type Statement, statementOf } from '../../db/statement.ts';
import type { MemoryOwner } from '../../engine/context/index.ts';

export const todoStatuses = ['pending', 'in_progress', 'completed'] as const;
export interface TodoEntry {
  readonly text: string;
  readonly status: (typeof todoStatuses)[number];
}

export interface FileEntry {
  readonly path: string;
  readonly sizeBytes: number;
}

/** Bytes that an owner's files have together without this one. */
export type FileLimit = (otherBytes: number) => void;

const keyOf = ({ sessionId, runId }: Omit<MemoryOwner, 'tenantId'>): string =>
  sessionId === null ? `run:${runId}` : `session:${sessionId}`;

export const memoryStore = defineStore((storage) => {
  const state = (owner: MemoryOwner) =>
    storage.db
      .selectFrom('agent_states')
      .select(['owner', 'todos', 'mode'])
      .where('tenant_id', '=', owner.tenantId)
      .where('owner', '=', keyOf(owner))
      .executeTakeFirst();

  const saveState = async (owner: MemoryOwner, values: { todos?: string; mode?: string }, now: number) => {
    const { owner: key, ...changed } = storage.rows.seal('agent_states', owner.tenantId, {
      owner: keyOf(owner),
      ...values,
      updated_at: now,
    });
    await storage.db
      .insertInto('agent_states')
      .values({ tenant_id: owner.tenantId, owner: key, todos: null, mode: null, ...changed })
      .onConflict((conflict) => conflict.columns(['tenant_id', 'owner']).doUpdateSet(changed))
      .execute();
  };

  const ownFiles = (owner: MemoryOwner) =>
    storage.db.selectFrom('agent_files').where('tenant_id', '=', owner.tenantId).where('owner', '=', keyOf(owner));

  const forget = (db: typeof storage.db, tenantId: string, owner: string) =>
    (['agent_files', 'agent_states'] as const).map((table) =>
      db.deleteFrom(table).where('tenant_id', '=', tenantId).where('owner', '=', owner),
    );

  return {
    async todos(owner: MemoryOwner): Promise<readonly TodoEntry[]> {
      const row = await state(owner);
      const todos = row === undefined ? null : storage.rows.open('agent_states', owner.tenantId, row).todos;
      return todos === null ? [] : (JSON.parse(todos) as TodoEntry[]);
    },
    saveTodos: (owner: MemoryOwner, todos: readonly TodoEntry[], now: number): Promise<void> =>
      saveState(owner, { todos: JSON.stringify(todos) }, now),
    async mode(owner: MemoryOwner): Promise<string | null> {
      return (await state(owner))?.mode ?? null;
    },
    saveMode: (owner: MemoryOwner, mode: string, now: number): Promise<void> => saveState(owner, { mode }, now),
    /** Ordered by path. */
    async files(owner: MemoryOwner): Promise<readonly FileEntry[]> {
      const rows = await ownFiles(owner).select(['path', 'size_bytes']).orderBy('path').execute();
      return rows.map((row) => ({ path: row.path, sizeBytes: Number(row.size_bytes) }));
    },
    async file(owner: MemoryOwner, path: string): Promise<string | null> {
      const row = await ownFiles(owner)
        .select(['owner', 'path', 'content'])
        .where('path', '=', path)
        .executeTakeFirst();
      return row === undefined ? null : storage.rows.open('agent_files', owner.tenantId, row).content;
    },
    /** `limit` throws when there is no room, and nothing is written. */
    saveFile: (owner: MemoryOwner, path: string, content: string, limit: FileLimit, now: number): Promise<void> =>
      // Sum and write belong together: parallel calls must not both fit into the same room.
      storage.atomic(async (transaction) => {
        const { total } = await transaction
          .selectFrom('agent_files')
          .select((eb) => eb.fn.sum<number | null>('size_bytes').as('total'))
          .where('tenant_id', '=', owner.tenantId)
          .where('owner', '=', keyOf(owner))
          .where('path', '!=', path)
          .executeTakeFirstOrThrow();
        limit(Number(total ?? 0));
        const key = { owner: keyOf(owner), path };
        const {
          owner: _owner,
          path: _path,
          ...values
        } = storage.rows.seal('agent_files', owner.tenantId, {
          ...key,
          content,
          size_bytes: Buffer.byteLength(content),
          updated_at: now,
        });
        await transaction
          .insertInto('agent_files')
          .values({ tenant_id: owner.tenantId, ...key, ...values })
          .onConflict((conflict) => conflict.columns(['tenant_id', 'owner', 'path']).doUpdateSet(values))
          .execute();
      }),
    /** False: there was none. */
    removeFile: (owner: MemoryOwner, path: string) =>
      deletesRow(
        storage.db
          .deleteFrom('agent_files')
          .where('tenant_id', '=', owner.tenantId)
          .where('owner', '=', keyOf(owner))
          .where('path', '=', path),
      ),
    forgetSession: (tenantId: string, sessionId: string): Promise<void> =>
      storage.atomic(async (db) => {
        for (const deletion of forget(db, tenantId, `session:${sessionId}`)) await deletion.execute();
      }),
    /** What a run without a session had; compiled, for the unit of its end. */
    forgottenRun: (tenantId: string, runId: string): readonly Statement[] =>
      forget(storage.db, tenantId, `run:${runId}`).map((deletion) => statementOf(deletion)),
  };
});

export type MemoryStore = StoreOf<typeof memoryStore>;

/** What the tools of the memory need. */
export interface MemoryDeps {
  readonly store: MemoryStore;
  readonly now: () => number;
}
