import { isoTime } from '../../core/iso-time.ts';
import type { ActiveRun } from '../active-run.ts';
import type { ChatMessage } from '../context/index.ts';
import type { RecordPorts } from '../record/index.ts';

/** What the session keeps of a canceled turn: the partial answer, marked. */
export const interruptedMessages = (run: ActiveRun, ports: Pick<RecordPorts, 'now' | 'newId'>): ChatMessage[] => {
  const messages = [...run.messages];
  if (run.partialText !== '')
    messages.push({
      messageId: ports.newId(),
      role: 'Assistant',
      runId: run.id,
      createdAt: isoTime(ports.now()),
      interrupted: true,
      contents: [{ type: 'Text', text: run.partialText }],
    });
  else {
    const last = messages.findLastIndex((message) => message.role === 'Assistant');
    const message = messages[last];
    if (message !== undefined) messages[last] = { ...message, interrupted: true };
  }
  return messages;
};
