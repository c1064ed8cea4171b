import { everyJob, everyRun, type RunRecord } from '../e2e/records.ts';
import type { ServiceProcess } from '../e2e/support.ts';
import { call, readLog, type SseFrame } from '../e2e/wire.ts';
import { type Life, leaseFindings } from './lease-history.ts';
import { type History, microUnits, terminal, type Use } from './load.ts';

export interface Checked {
  readonly service: Pick<ServiceProcess, 'url'>;
  readonly history: History;
  readonly hits: ReadonlyMap<string, number>;
  /** Runs that each agent with a limit may have. */
  readonly limit: number;
  /** What each agent of `history.spent` may use; its runs are not bounded. */
  readonly allowance: Omit<Use, 'runs'>;
  /** Logs that are read at most; the newest of each kind. */
  readonly mostLogs: number;
  /** Every process that has served. */
  readonly lives: readonly Life[];
}

// A run that asks in the mailbox is over; what is decided starts another one.
const ends = new Set(['Completed', 'Failed', 'Canceled', 'AwaitingApproval']);

/** A log is numbered without a gap and has one end, at its end. */
const logFindings = (runId: string, log: readonly SseFrame[]): string[] => {
  const findings: string[] = [];
  if (log.some(({ id }, index) => id !== index)) findings.push(`the log of run ${runId} has a gap`);
  const last = log.filter(({ event }) => terminal.test(event)).length;
  if (last !== 1 || !terminal.test(log.at(-1)?.event ?? '')) findings.push(`the log of run ${runId} has ${last} ends`);
  return findings;
};

/** What a client was shown, over all its connections, is the log: each event once, and in its order. */
const streamFindings = (runId: string, frames: readonly SseFrame[], log: readonly SseFrame[]): string[] => {
  const numbered = frames.filter(({ id }) => id !== null);
  const findings: string[] = [];
  if (numbered.some(({ id }, index) => id !== index) || numbered.length !== log.length)
    findings.push(`a client of run ${runId} missed an event or got one twice`);
  const differs = numbered.some(({ id, event, data }) => {
    const logged = log[id as number];
    return logged?.event !== event || logged.data !== data;
  });
  if (differs) findings.push(`run ${runId} was shown something else than its log says`);
  return findings;
};

const answered = ({ streams, answers, queued }: History): string[] => [...streams.keys(), ...answers.keys(), ...queued];

const runFindings = (runs: ReadonlyMap<string, RunRecord>, history: History): string[] => [
  ...[...history.untold].map(([id, answer]) => `nobody told how run ${id} ended: ${answer}`),
  ...answered(history).flatMap((id) => (runs.has(id) ? [] : [`run ${id} was acknowledged and is not there`])),
  ...[...history.answers.keys()].flatMap((id) =>
    runs.get(id)?.status === 'Completed' ? [] : [`run ${id} was answered and is ${runs.get(id)?.status}`],
  ),
  ...[...runs.values()].flatMap(({ id, status }) => (ends.has(status) ? [] : [`run ${id} is still ${status}`])),
];

const logsFindings = async ({ service, history, mostLogs }: Checked): Promise<string[]> => {
  const attempts = new Map((await everyJob(service)).map(({ id, attempt }) => [id, attempt]));
  const findings: string[] = [];
  for (const kind of [[...history.streams.keys()], [...history.answers.keys()], [...history.queued]])
    for (const runId of kind.slice(-mostLogs)) {
      const log = await readLog(service.url, runId);
      findings.push(...logFindings(runId, log));
      const frames = history.streams.get(runId);
      if (frames !== undefined) findings.push(...streamFindings(runId, frames, log));
      // Each attempt is that of a lease.
      const starts = log.filter(({ event }) => event === 'run.started').length;
      const most = attempts.get(runId) ?? 1;
      if (starts > most) findings.push(`run ${runId} was begun ${starts} times in ${most} attempts of its job`);
    }
  return findings;
};

/** Every turn that was answered is in the session once, and questions and answers never mix. */
const sessionFindings = async ({ service, history }: Checked): Promise<string[]> => {
  const findings: string[] = [];
  for (const [session, turns] of history.turns) {
    const answer = await call(`${service.url}/api/sessions/${session}`);
    const { messages } = answer.json<{ messages: { role: string }[] }>();
    const tags = messages.map((message) => `${message.role} ${/t\d{5,}/.exec(JSON.stringify(message))?.[0]}`);
    for (const tag of turns)
      if (tags.filter((seen) => seen === `User ${tag}`).length !== 1)
        findings.push(`turn ${tag} of session ${session} was answered and is not there once`);
    for (const [index, seen] of tags.entries())
      if (index % 2 === 0 ? !seen.startsWith('User ') : seen !== tags[index - 1]?.replace('User', 'Assistant'))
        findings.push(`message ${index} of session ${session} is ${seen}: two have written at once`);
  }
  return findings;
};

const effectFindings = ({ hits }: Checked): string[] =>
  [...hits].flatMap(([name, count]) =>
    count > 1 && /^(Destructive|External)\//.test(name) ? [`${name} was called ${count} times`] : [],
  );

const metrics = ['runs', 'tokens', 'cost'] as const;

/** Not a token and not a micro-unit more than allowed, at no moment, and nothing that was answered is missing. */
const spendingFindings = async ({ service, history, allowance }: Checked): Promise<string[]> => {
  const findings = [...history.shrunk].map((counter) => `the counter of ${counter} has shown less than before`);
  const judge = (agent: string, used: Use, how: string): void => {
    for (const metric of ['tokens', 'cost'] as const)
      if (used[metric] > allowance[metric])
        findings.push(`${used[metric]} of the ${metric} of ${agent} were ${how}, and ${allowance[metric]} are allowed`);
  };
  for (const [counter, used] of history.shown) {
    const agent = counter.split(' ')[0] ?? '';
    if (history.spent.has(agent)) judge(agent, used, 'shown');
  }
  for (const [agent, spent] of history.spent) {
    judge(agent, spent, 'answered');
    const answer = await call(`${service.url}/api/quotas/usage?agentName=${agent}&period=Daily`);
    const [row] = answer.json<{ usage: Use[] }>().usage;
    const counted = { runs: row?.runs ?? 0, tokens: row?.tokens ?? 0, cost: microUnits(row?.cost ?? 0) };
    judge(agent, counted, 'counted');
    for (const metric of metrics)
      if (counted[metric] < spent[metric])
        findings.push(`${spent[metric]} of the ${metric} of ${agent} were answered and ${counted[metric]} counted`);
  }
  return findings;
};

const quotaFindings = async ({ service, history, limit }: Checked): Promise<string[]> => {
  const findings: string[] = [];
  for (const [agent, count] of history.limited) {
    if (count > limit) findings.push(`${count} runs of ${agent} were answered with a limit of ${limit}`);
    const usage = await call(`${service.url}/api/quotas/usage?agentName=${agent}&period=Daily`);
    const runs = usage.json<{ usage: { runs: number }[] }>().usage[0]?.runs ?? 0;
    if (runs > limit) findings.push(`${runs} runs of ${agent} were counted with a limit of ${limit}`);
    if (runs < count) findings.push(`${count} runs of ${agent} were answered and ${runs} counted`);
  }
  const verification = await call(`${service.url}/api/quotas/verification`);
  if (!verification.json<{ matches: boolean }>().matches) findings.push('the counters are not the sums of the runs');
  return findings;
};

const auditFindings = async ({ service }: Checked): Promise<string[]> => {
  const answer = await call(`${service.url}/api/audit/verify`);
  return answer.json<{ status: string }>().status === 'Valid'
    ? []
    : [`the audit trail does not verify: ${answer.text}`];
};

/** What the store says against what clients were told and what tools did; empty when both agree. */
export const findings = async (checked: Checked): Promise<readonly string[]> => {
  const runs = new Map((await everyRun(checked.service)).map((run) => [run.id, run]));
  return [
    ...runFindings(runs, checked.history),
    ...(await logsFindings(checked)),
    ...(await sessionFindings(checked)),
    ...effectFindings(checked),
    ...(await quotaFindings(checked)),
    ...(await spendingFindings(checked)),
    ...(await auditFindings(checked)),
    ...leaseFindings(checked.lives),
  ];
};
