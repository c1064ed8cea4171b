import type { Client } from '../../client/client.ts';
import type { PendingApproval } from '../../features/approvals/approvals.schema.ts';
import type { GlobalOptions } from '../session.ts';
import type { RunPause } from './run-pause.ts';

/** A command line that answers what waits. */
export interface NextCommand {
  readonly answer: 'approve' | 'reject' | 'result' | 'error';
  readonly words: readonly string[];
}

/** Options of the command that was run which the one after it needs as well. */
export const globalWords = ({ url, tokenFile, config, set, json }: GlobalOptions): string[] => [
  ...(url === undefined ? [] : ['--url', url]),
  ...(tokenFile === undefined ? [] : ['--token-file', tokenFile]),
  ...(config === undefined ? [] : ['--config', config]),
  ...set.flatMap((pair) => ['--set', pair]),
  ...(json ? ['--json'] : []),
];

/** Answers in the next run of the session. `carried` are options of `acp run` that every turn of the agent needs. */
export const inBandCommands = (
  globals: GlobalOptions,
  agentName: string,
  { sessionId, approvals, clientToolCalls }: RunPause,
  carried: readonly string[] = [],
): readonly NextCommand[] => {
  const turn = ['acp', 'run', agentName, '--session', sessionId];
  const rest = [...carried, ...globalWords(globals)];
  const results = (option: string, text: string): string[] =>
    clientToolCalls.flatMap(({ callId }) => [option, `${callId}=${text}`]);
  if (approvals.length > 0)
    return [
      { answer: 'approve', words: [...turn, '--approve', 'all', ...rest] },
      { answer: 'reject', words: [...turn, '--reject', 'all', '--reason', 'TEXT', ...rest] },
    ];
  return [
    { answer: 'result', words: [...turn, ...results('--tool-result', 'TEXT'), ...rest] },
    { answer: 'error', words: [...turn, ...results('--tool-error', 'TEXT'), ...rest] },
  ];
};

// A run waits for at most as many calls as a model makes in one turn; more are found with `acp approvals list`.
const mailboxPage = 200;

/** Decisions in the mailbox: one command for each call that still waits there. */
const mailboxCommands = (globals: GlobalOptions, waiting: readonly PendingApproval[]): readonly NextCommand[] =>
  waiting.flatMap(({ id }) => [
    { answer: 'approve' as const, words: ['acp', 'approvals', 'approve', id, ...globalWords(globals)] },
    {
      answer: 'reject' as const,
      words: ['acp', 'approvals', 'reject', id, '--reason', 'TEXT', ...globalWords(globals)],
    },
  ]);

/**
 * What answers a paused run: the next run of its session; the mailbox when the run had no reader, or when one of its calls
 * was decided there.
 */
export const nextCommands = async (
  client: Client,
  globals: GlobalOptions,
  pause: RunPause,
): Promise<readonly NextCommand[]> => {
  const { body: run } = await client.runs.get({ params: { runId: pause.runId } });
  const { agentName } = run;
  if (pause.approvals.length === 0) return inBandCommands(globals, agentName, pause);
  const { body: rows } = await client.approvals.list({ query: { agentName, take: mailboxPage } });
  const waiting = rows.filter((row) => row.runId === run.id);
  const isBegun = waiting.length > 0 && waiting.length < pause.approvals.length;
  return run.jobId !== null || isBegun ? mailboxCommands(globals, waiting) : inBandCommands(globals, agentName, pause);
};

const plainWord = /^[\w@%+=:,./-]+$/;

/** A command line that a POSIX shell reads back as exactly these words. */
export const shellLine = (words: readonly string[]): string =>
  words.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
