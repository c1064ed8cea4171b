import type { Storage } from '../../../db/storage.ts';
import { createPauseEnds, type PauseEndDeps } from './pause-ends.ts';
import { sessionRequestStore } from './session-requests.store.ts';

export { askedText } from './asked-requests.rules.ts';
export { answeredCalls, refusedPart, rejection } from './open-calls.rules.ts';
export { createOwnSessionTurns } from './own-session-turns.ts';
export { createQueuedPlaces, type QueuedPlaces } from './queued-places.ts';
export { hasAnswers } from './request-answers.rules.ts';
export { createSessionAccess, type SessionAccess } from './session-access.ts';
export { createSessionPauses, type Mailbox, responseMessage } from './session-pauses.ts';
export { createSessionPlaces, type Placed, type SessionPlaces } from './session-places.ts';
export { type SessionRequestStore, sessionRequestStore } from './session-requests.store.ts';
export type { SessionTurns } from './session-turns.ts';
export { createSharedSessionTurns, type SharedSessionTurnDeps } from './shared-session-turns.ts';

/** What sessions wait for, and who is told when that is over: made before those who pause sessions and those who go on. */
export const createSessionWaits = (deps: PauseEndDeps & { readonly storage: Storage }) => ({
  requests: deps.storage.stores(sessionRequestStore),
  ends: createPauseEnds(deps),
});

export type SessionWaits = ReturnType<typeof createSessionWaits>;
