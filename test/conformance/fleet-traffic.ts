import { appendFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { environment } from '../../src/core/environment.ts';

/** What the runner adds up: a fleet's answers by process, and which of them the requests of one run or session met. */
interface FleetTraffic {
  readonly answers: readonly number[];
  /** Runs and sessions that the rules asked for more than once. */
  readonly conversations: number;
  /** Those of them of which more than one process answered something. */
  readonly spread: number;
}

const named = /^\/api\/(?:runs|sessions)\/([^/?]+)/;

/** Counts what the proxy of the rules passes on to the processes behind it. */
export const createFleetTraffic = (processUrls: readonly string[]) => {
  const answers = new Map(processUrls.map((url) => [url, 0]));
  const conversations = new Map<string, { answers: number; readonly processes: Set<string> }>();
  return {
    observe(process: string, request: IncomingMessage, answer: IncomingMessage): void {
      answers.set(process, (answers.get(process) ?? 0) + 1);
      const ids = new Set([named.exec(request.url ?? '')?.[1], answer.headers['x-run-id']]);
      for (const id of ids) {
        if (typeof id !== 'string') continue;
        const conversation = conversations.get(id) ?? { answers: 0, processes: new Set() };
        conversation.answers += 1;
        conversation.processes.add(process);
        conversations.set(id, conversation);
      }
    },
    /** Leaves its counts to the runner. */
    report(): void {
      const file = environment()['ACP_CONFORMANCE_TRAFFIC'] ?? '';
      if (file === '') return;
      const talks = [...conversations.values()].filter((each) => each.answers > 1);
      const traffic: FleetTraffic = {
        answers: [...answers.values()],
        conversations: talks.length,
        spread: talks.filter(({ processes }) => processes.size > 1).length,
      };
      appendFileSync(file, `${JSON.stringify(traffic)}\n`);
    },
  };
};
