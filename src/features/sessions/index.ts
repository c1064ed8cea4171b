export { sessionTexts } from './session-texts.ts';
export { createSessionTurns, type SessionTurns } from './session-turns.ts';
export { createSessionStore, type SessionStore } from './sessions.store.ts';
