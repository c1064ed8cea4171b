export { sessionTexts } from './session-texts.ts';
export { createSessionTurns, type SessionPlace, type SessionTurns } from './session-turns.ts';
export { createSessionStore, type SessionStore } from './sessions.store.ts';
