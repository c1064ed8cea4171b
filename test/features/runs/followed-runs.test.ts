import assert from 'node:assert/strict';
import type { Frame } from '../../../src/contract/operation.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { newId } from '../../../src/core/ids.ts';
import { noAnnouncements } from '../../../src/db/announcements.ts';
import type { RootStorage } from '../../../src/db/storage.ts';
import { encodePack } from '../../../src/engine/record/index.ts';
import { createFollowedRuns } from '../../../src/features/runs/followed-runs.ts';
import { runEventSource } from '../../../src/features/runs/run-event-source.ts';
import { createRunJournal } from '../../../src/features/runs/run-journal.store.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { eventually } from '../../support/eventually.ts';
import { forEachDurableStore, openForTwo } from '../../support/store.ts';
import { opensRun } from './other-process.ts';

/** What the process of a run commits: events of these types from a number on, and the status that the row has then. */
const commits = async (storage: RootStorage, runId: string, first: number, types: string[], status = 'Running') => {
  const events = types.map((type, index) => ({
    ...{ sequence: first + index, type, timestamp: 1, members: '{}', stored: '{}' },
  }));
  const journal = storage.stores(createRunJournal(null, null));
  const packed = journal.packed('default', runId, first, first + types.length - 1, encodePack(events));
  await storage.transaction(async (stores) => {
    await stores(runStore).closeFrom({ tenant_id: 'default', id: runId }, 'Running', { status });
    await stores.write([packed]);
  });
};

const follows = (
  deps: Parameters<typeof runEventSource>[0],
  runId: string,
  from = 0,
): { readonly ids: (number | undefined)[]; isOver: boolean; stop(): void } => {
  const seen = { ids: [] as (number | undefined)[], isOver: false, stop: (): void => undefined };
  seen.stop = runEventSource(deps, 'default', runId, from).subscribe(
    (frames: readonly Frame[]) => void seen.ids.push(...frames.map(({ id }) => id)),
    () => {
      seen.isOver = true;
    },
  );
  return seen;
};

forEachDurableStore(
  'RUN-25 logs of another process are followed without a single announcement, by one question for all of them',
  async (t, kind) => {
    const [writer, reader] = await openForTwo(t, kind);
    const store = reader.stores(runStore);
    const asked: number[] = [];
    const heads: typeof store.heads = (ids) => {
      asked.push(ids.length);
      return store.heads(ids);
    };
    const followed = createFollowedRuns({
      store: { heads },
      announcements: noAnnouncements,
      pollIntervalMs: 5,
      clock: systemClock,
    });
    t.after(followed.close);
    const deps = { store, engine: { active: () => undefined }, followed };
    const [a, b] = [newId(), newId()];
    for (const id of [a, b]) {
      await opensRun(writer, id);
      await commits(writer, id, 0, ['run.started']);
    }
    const readers = [follows(deps, a), follows(deps, a, 1), follows(deps, b)];
    await commits(writer, a, 1, ['message.delta', 'message.delta']);
    await eventually('all that there is', async () => readers.flatMap(({ ids }) => ids).length === 6 || null);
    assert.deepEqual(
      readers.map(({ ids }) => ids),
      [[0, 1, 2], [1, 2], [0]],
    );
    await eventually('both runs are asked for at once', async () => asked.includes(2) || null);
    assert.ok(asked.every((count) => count <= 2));
    await commits(writer, a, 3, ['run.completed'], 'Completed');
    await eventually('the end of the first run', async () => (readers[0]?.isOver && readers[1]?.isOver) || null);
    assert.deepEqual(
      readers.map(({ ids }) => ids.at(-1)),
      [3, 3, 0],
    );
    // A run whose log is gone: closed is closed.
    await writer.transaction((stores) =>
      stores(runStore).closeFrom({ tenant_id: 'default', id: b }, 'Running', { status: 'Failed' }),
    );
    await eventually('the end of the second run', async () => readers[2]?.isOver || null);
    const last = asked.length;
    const late = follows(deps, a, 4);
    await eventually('nothing follows the end', async () => late.isOver || null);
    assert.deepEqual([late.ids, asked.length], [[], last], 'nobody asks while nobody follows');
  },
);
