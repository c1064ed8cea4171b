import type { ExpressionBuilder } from 'kysely';
import { defineStore, type StoreOf } from '../../../db/define-store.ts';
import { preparedStatement, type Statement } from '../../../db/statement.ts';
import type { SessionPlaceRow, SessionRow } from '../../../db/tables/sessions.ts';
import type { Tables } from '../../../db/tables.ts';

/** Where a run stands in the line of its session. */
export type PlaceOrder = Pick<SessionPlaceRow, 'rank' | 'arrived_at' | 'run_id'>;

/** Of a run that has no place: everybody in line comes before it. */
const afterAll = 2;

type SessionExpressions = ExpressionBuilder<Tables, 'sessions'>;

/**
 * The line of a session over the processes of its store: a row for each run that waits. A run takes the session in one
 * statement that asks for both, the row that is free and nobody before it in line.
 */
export const sessionPlaceStore = defineStore((storage) => {
  const { db } = storage;
  const ofSession = (tenantId: string, sessionId: string) =>
    db.selectFrom('session_places').where('tenant_id', '=', tenantId).where('session_id', '=', sessionId);

  const awaited = (eb: SessionExpressions, now: number) =>
    eb
      .selectFrom('session_places')
      .select('session_places.run_id')
      .whereRef('session_places.tenant_id', '=', 'sessions.tenant_id')
      .whereRef('session_places.session_id', '=', 'sessions.id')
      .where('session_places.kept_until', '>=', now);

  type Taken = 'tenantId' | 'sessionId' | 'runId' | 'now' | 'until' | 'rank' | 'arrivedAt';
  const isFree = (eb: SessionExpressions, of: (name: Taken) => never) =>
    eb.and([
      eb.or([eb('active_run_id', 'is', null), eb('lock_until', '<', of('now'))]),
      eb.not(
        eb.exists(
          awaited(eb, of('now'))
            .where('session_places.run_id', '!=', of('runId'))
            .where((place) =>
              place.or([
                place('session_places.rank', '<', of('rank')),
                place.and([
                  place('session_places.rank', '=', of('rank')),
                  place.or([
                    place('session_places.arrived_at', '<', of('arrivedAt')),
                    place.and([
                      place('session_places.arrived_at', '=', of('arrivedAt')),
                      place('session_places.run_id', '<', of('runId')),
                    ]),
                  ]),
                ]),
              ]),
            ),
        ),
      ),
    ]);

  const lock = preparedStatement<Taken>(
    (of) =>
      db
        .updateTable('sessions')
        .set({ active_run_id: of('runId'), lock_until: of('until') })
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        // Its own: a further attempt follows one whose process is gone.
        .where((eb) => eb.or([eb('active_run_id', '=', of('runId')), isFree(eb, of)])),
    { mustChange: true, isRepeatable: true },
  );
  const reopen = preparedStatement<Taken | 'agentName' | 'ownerId' | 'conversationId'>(
    (of) =>
      db
        .updateTable('sessions')
        .set({
          agent_name: of('agentName'),
          owner_id: of('ownerId'),
          conversation_id: of('conversationId'),
          active_run_id: of('runId'),
          lock_until: of('until'),
          created_at: of('now'),
          updated_at: of('now'),
        })
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        .where('version', '=', 0)
        // Its own: what it has taken in an attempt whose answer was lost.
        .where((eb) => eb.or([eb('active_run_id', '=', of('runId')), isFree(eb, of)])),
    { mustChange: true, isRepeatable: true },
  );
  const drop = preparedStatement<'tenantId' | 'sessionId' | 'runId'>(
    (of) =>
      db
        .deleteFrom('session_places')
        .where('tenant_id', '=', of('tenantId'))
        .where('session_id', '=', of('sessionId'))
        .where('run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  const free = preparedStatement<'tenantId' | 'sessionId' | 'runId'>(
    (of) =>
      db
        .updateTable('sessions')
        .set({ active_run_id: null, lock_until: null })
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        .where('active_run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  // While others wait for it the session stays: its row is what they are told of.
  const dropUnused = preparedStatement<'tenantId' | 'sessionId' | 'now'>(
    (of) =>
      db
        .deleteFrom('sessions')
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        .where('version', '=', 0)
        .where('active_run_id', 'is', null)
        .where((eb) => eb.not(eb.exists(awaited(eb, of('now'))))),
    { isRepeatable: true },
  );
  const renewLock = preparedStatement<'tenantId' | 'sessionId' | 'runId' | 'until'>(
    (of) =>
      db
        .updateTable('sessions')
        .set({ lock_until: of('until') })
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        .where('active_run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  const renewPlace = preparedStatement<'tenantId' | 'sessionId' | 'runId' | 'until'>(
    (of) =>
      db
        .updateTable('session_places')
        .set({ kept_until: of('until') })
        .where('tenant_id', '=', of('tenantId'))
        .where('session_id', '=', of('sessionId'))
        .where('run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  const order = (place: PlaceOrder | null) => ({
    rank: place?.rank ?? afterAll,
    arrivedAt: place?.arrived_at ?? 0,
  });

  return {
    /** Those that are kept, in the order in which they come to the session. */
    line: (tenantId: string, sessionId: string, now: number): Promise<readonly SessionPlaceRow[]> =>
      ofSession(tenantId, sessionId)
        .selectAll()
        .where('kept_until', '>=', now)
        .orderBy('rank')
        .orderBy('arrived_at')
        .orderBy('run_id')
        .execute(),
    /** Makes a place, or keeps the one that the run has, where it stands by now. */
    async keep(place: SessionPlaceRow): Promise<void> {
      const { rank, arrived_at, kept_until } = place;
      await db
        .insertInto('session_places')
        .values(place)
        .onConflict((conflict) =>
          conflict.columns(['tenant_id', 'session_id', 'run_id']).doUpdateSet({ rank, arrived_at, kept_until }),
        )
        .execute();
    },
    /** Takes a free session for the run whose turn it is, or its own again; fails its unit otherwise. Null: without a place. */
    lock: (
      { tenantId, sessionId, runId }: Readonly<Record<'tenantId' | 'sessionId' | 'runId', string>>,
      place: PlaceOrder | null,
      now: number,
      until: number,
    ): Statement => lock({ tenantId, sessionId, runId, now, until, ...order(place) }),
    /** Takes over a row of which no turn was ever saved, likewise. */
    reopen: (session: SessionRow, place: PlaceOrder | null): Statement =>
      reopen({
        tenantId: session.tenant_id,
        sessionId: session.id,
        runId: session.active_run_id,
        agentName: session.agent_name,
        ownerId: session.owner_id,
        conversationId: session.conversation_id,
        now: session.created_at,
        until: session.lock_until,
        ...order(place),
      }),
    drop,
    /** Frees the session; one that never had a turn goes, unless somebody waits for it. */
    release: (tenantId: string, sessionId: string, runId: string, now: number): readonly Statement[] => [
      free({ tenantId, sessionId, runId }),
      dropUnused({ tenantId, sessionId, now }),
    ],
    /** Gives up a place. */
    leave: (tenantId: string, sessionId: string, runId: string, now: number): readonly Statement[] => [
      drop({ tenantId, sessionId, runId }),
      dropUnused({ tenantId, sessionId, now }),
    ],
    renewLock,
    renewPlace,
  };
});

export type SessionPlaceStore = StoreOf<typeof sessionPlaceStore>;
