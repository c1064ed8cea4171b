import { type ExpressionBuilder, sql } from 'kysely';
import { defineStore, type StoreOf } from '../../../db/define-store.ts';
import { preparedStatement, type Statement } from '../../../db/statement.ts';
import type { SessionPlaceRow, SessionRow } from '../../../db/tables/sessions.ts';
import type { Tables } from '../../../db/tables.ts';

/** Where a run stands in the line of its session. */
export type PlaceOrder = Pick<SessionPlaceRow, 'rank' | 'arrived_at'>;

/** A place with the run that has the session, whose lock may have lapsed. */
export type PlaceInLine = SessionPlaceRow & Pick<SessionRow, 'active_run_id' | 'lock_until'>;

/** Whose place it is. */
export type Place = Readonly<Record<'tenantId' | 'sessionId' | 'runId', string>>;

/** Of a run that has no place: everybody in line comes before it. */
const afterAll = 2;

type SessionExpressions = ExpressionBuilder<Tables, 'sessions'>;

/**
 * The line of a session over the processes of its store: a row for each run that waits, from its arrival until the run
 * has ended. A run takes the session in one statement that asks for both, the row that is free and nobody before it in
 * line. The order of arrival is a number above all that the line has by then: whoever comes after an arrival was answered
 * sees it, whatever clocks say; of two that come in one moment either is the first.
 */
export const sessionPlaceStore = defineStore((storage) => {
  const { db } = storage;
  /**
   * By its process; or by its job, for as long as that is open or gets a further attempt. A job whose lease ended in its
   * last attempt is closed by the next worker that checks, and the session does not wait for it.
   */
  const isKept = (eb: ExpressionBuilder<Tables, 'session_places'>, now: number) =>
    eb.or([
      eb('session_places.kept_until', '>=', now),
      eb.exists(
        eb
          .selectFrom('jobs')
          .select('jobs.id')
          .whereRef('jobs.id', '=', 'session_places.run_id')
          .where('jobs.completed_at', 'is', null)
          .where((job) =>
            job.or([
              job('jobs.lease_until', 'is', null),
              job('jobs.lease_until', '>=', now),
              job('jobs.attempt', '<', job.ref('jobs.max_attempts')),
            ]),
          ),
      ),
    ]);
  const awaited = (eb: SessionExpressions, now: number) =>
    eb
      .selectFrom('session_places')
      .select('session_places.run_id')
      .whereRef('session_places.tenant_id', '=', 'sessions.tenant_id')
      .whereRef('session_places.session_id', '=', 'sessions.id')
      .where((place) => isKept(place, now));

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
  const reopen = preparedStatement<Taken | 'agentName' | 'ownerId' | 'conversationId' | 'door'>(
    (of) =>
      db
        .updateTable('sessions')
        .set({
          agent_name: of('agentName'),
          owner_id: of('ownerId'),
          door: of('door'),
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
  const drop = preparedStatement<keyof Place>(
    (of) =>
      db
        .deleteFrom('session_places')
        .where('tenant_id', '=', of('tenantId'))
        .where('session_id', '=', of('sessionId'))
        .where('run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  const free = preparedStatement<keyof Place>(
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
  const renewLock = preparedStatement<keyof Place | 'until'>(
    (of) =>
      db
        .updateTable('sessions')
        .set({ lock_until: of('until') })
        .where('tenant_id', '=', of('tenantId'))
        .where('id', '=', of('sessionId'))
        .where('active_run_id', '=', of('runId')),
    { isRepeatable: true },
  );
  type Arriving = keyof Place | 'rank' | 'until';
  /** Makes a place, behind all of its rank or before them; one that is there stays as it is. */
  const arrival = (where: 'behind' | 'before') =>
    preparedStatement<Arriving>(
      (of) =>
        db
          .insertInto('session_places')
          .values((eb) => ({
            tenant_id: of('tenantId'),
            session_id: of('sessionId'),
            run_id: of('runId'),
            rank: of('rank'),
            arrived_at: eb
              .selectFrom('session_places as other')
              .where('other.tenant_id', '=', of('tenantId'))
              .where('other.session_id', '=', of('sessionId'))
              .select((other) =>
                where === 'behind'
                  ? other(other.fn.coalesce(other.fn.max('other.arrived_at'), other.lit(0)), '+', other.lit(1)).as('at')
                  : other(other.fn.coalesce(other.fn.min('other.arrived_at'), other.lit(1)), '-', other.lit(1)).as(
                      'at',
                    ),
              ),
            kept_until: of('until'),
          }))
          .onConflict((conflict) => conflict.doNothing()),
      { isRepeatable: true },
    );
  const behind = arrival('behind');
  const before = arrival('before');
  // What a run finds that is the first of its session: as one that lapsed in its first turn.
  const vacant = preparedStatement<'tenantId' | 'sessionId' | 'agentName' | 'conversationId' | 'now'>(
    (of) =>
      db
        .insertInto('sessions')
        .values({
          tenant_id: of('tenantId'),
          id: of('sessionId'),
          agent_name: of('agentName'),
          conversation_id: of('conversationId'),
          version: sql.lit(0),
          message_count: sql.lit(0),
          created_at: of('now'),
          updated_at: of('now'),
        })
        .onConflict((conflict) => conflict.doNothing()),
    { isRepeatable: true },
  );
  const renewPlace = preparedStatement<keyof Place | 'until'>(
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
    /** Those that are kept, in the order in which they come to the session; that of the run that has it is among them. */
    line: (tenantId: string, sessionId: string, now: number): Promise<readonly PlaceInLine[]> =>
      db
        .selectFrom('session_places')
        .leftJoin('sessions', (join) =>
          join
            .onRef('sessions.tenant_id', '=', 'session_places.tenant_id')
            .onRef('sessions.id', '=', 'session_places.session_id'),
        )
        .selectAll('session_places')
        .select(['sessions.active_run_id', 'sessions.lock_until'])
        .where('session_places.tenant_id', '=', tenantId)
        .where('session_places.session_id', '=', sessionId)
        .where((eb) => isKept(eb, now))
        .orderBy('rank')
        .orderBy('arrived_at')
        .orderBy('run_id')
        .execute(),
    /** Where it stands, also while nobody keeps it. */
    placeOf: ({ tenantId, sessionId, runId }: Place): Promise<SessionPlaceRow | undefined> =>
      db
        .selectFrom('session_places')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('session_id', '=', sessionId)
        .where('run_id', '=', runId)
        .executeTakeFirst(),
    behind,
    before,
    vacant,
    /** Takes a free session for the run whose turn it is, or its own again; fails its unit otherwise. Null: without a place. */
    lock: ({ tenantId, sessionId, runId }: Place, place: PlaceOrder | null, now: number, until: number): Statement =>
      lock({ tenantId, sessionId, runId, now, until, ...order(place) }),
    /** Takes over a row of which no turn was ever saved, likewise. */
    reopen: (session: SessionRow, place: PlaceOrder | null): Statement =>
      reopen({
        tenantId: session.tenant_id,
        sessionId: session.id,
        runId: session.active_run_id,
        agentName: session.agent_name,
        ownerId: session.owner_id,
        door: session.door,
        conversationId: session.conversation_id,
        now: session.created_at,
        until: session.lock_until,
        ...order(place),
      }),
    drop,
    /** Frees the session. One that never had a turn goes, unless somebody waits for it. */
    free: ({ tenantId, sessionId, runId }: Place, now: number): readonly Statement[] => [
      free({ tenantId, sessionId, runId }),
      dropUnused({ tenantId, sessionId, now }),
    ],
    /** Gives up the session and the place. */
    release: ({ tenantId, sessionId, runId }: Place, now: number): readonly Statement[] => [
      free({ tenantId, sessionId, runId }),
      drop({ tenantId, sessionId, runId }),
      dropUnused({ tenantId, sessionId, now }),
    ],
    /** Gives up a place. */
    leave: ({ tenantId, sessionId, runId }: Place, now: number): readonly Statement[] => [
      drop({ tenantId, sessionId, runId }),
      dropUnused({ tenantId, sessionId, now }),
    ],
    renewLock,
    renewPlace,
  };
});

export type SessionPlaceStore = StoreOf<typeof sessionPlaceStore>;
