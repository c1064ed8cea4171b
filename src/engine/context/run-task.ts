import type { ActiveRun } from '../active-run.ts';
import type { ChatMessage } from './chat-message.ts';

/** What the user asked for: the run's first input, or the session's last one where the run goes on from another. */
export const taskMessage = (run: Pick<ActiveRun, 'messages' | 'session'>): ChatMessage | null =>
  run.messages.find(({ role }) => role === 'User') ??
  run.session?.history.findLast(({ role }) => role === 'User') ??
  null;

/** The same as text. */
export const taskText = (run: Pick<ActiveRun, 'messages' | 'session'>): string =>
  (taskMessage(run)?.contents ?? []).map((part) => (part.type === 'Text' ? part.text : '')).join('');
