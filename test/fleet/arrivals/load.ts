import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { type Answer, call } from '../../e2e/wire.ts';
import type { RecordedCall, RecordedSchedule } from './checker.ts';

export const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const webhook = new Webhook(secret);

/** The schedule without a time, which is triggered with a payload for each batch. */
const batches = 'batches';
const senders = 3;
const minute = Array.from({ length: 60 }, (_, index) => index);

/** In zones whose offsets are no whole hours, too; none is the same minute everywhere. */
const times: readonly { readonly cron: string; readonly timeZone: string; readonly minutes: readonly number[] }[] = [
  ...['UTC', 'Europe/Berlin', 'Asia/Kolkata', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'America/St_Johns'].map(
    (timeZone) => ({ cron: '* * * * *', timeZone, minutes: minute }),
  ),
  { cron: '*/2 * * * *', timeZone: 'Asia/Kathmandu', minutes: minute.filter((one) => one % 2 === 0) },
  { cron: '1-59/2 * * * *', timeZone: 'Asia/Kathmandu', minutes: minute.filter((one) => one % 2 === 1) },
  { cron: '*/3 * * * *', timeZone: 'Pacific/Chatham', minutes: minute.filter((one) => one % 3 === 0) },
  {
    cron: '0,10,20-59 * * * *',
    timeZone: 'Asia/Kolkata',
    minutes: minute.filter((one) => one >= 20 || one % 10 === 0),
  },
];

export interface Load {
  readonly url: string;
  readonly items: number;
  readonly isOver: () => boolean;
  readonly random: () => number;
  /** What came of it, filled while it goes on. */
  readonly calls: Map<string, RecordedCall>;
  readonly acknowledgedJobs: string[];
  /** Requests of the senders, repeats included. */
  requests: number;
}

const sent = (url: string, path: string, method: string, body?: object): Promise<Answer | null> =>
  call(url + path, { method, ...(body === undefined ? {} : { body }) }).catch(() => null);

/** Asked again until somebody has done it, by operations that may be repeated. */
const settled = async (url: string, path: string, method: string, body: object): Promise<Answer> => {
  let last = 'no answer';
  for (let turn = 0; turn < 100; turn += 1) {
    const answer = await sent(url, path, method, body);
    if (answer !== null && answer.status < 300) return answer;
    if (answer !== null) last = `${answer.status} ${answer.text}`;
    await pause(200);
  }
  throw new Error(`${method} ${path}: ${last}`);
};

const scheduleOf = (index: number, enabled: boolean) => {
  const { cron, timeZone } = times[index] ?? { cron: null, timeZone: 'UTC' };
  const payload = ['x', 'y', 'z'].map((one) => `do s${index}-${one}`);
  return { handlerKey: 'acp.agent-batch', targetName: 'worker', cron, timeZone, enabled, payload };
};

/** Agents, a trigger, who is told, and the schedules, which occur from now on. */
export const prepare = async (url: string, receiver: string): Promise<RecordedSchedule[]> => {
  const model = { provider: 'demo', model: 'm' };
  for (const name of ['worker', 'clerk'])
    await settled(url, '/api/agents', 'POST', { name, model, toolNames: ['destructive'] });
  const secretOf = (section: string) => ({ secretConfigurationKey: `Service:${section}:crm` });
  await settled(url, '/api/triggers/arrival', 'PUT', { targetName: 'clerk', ...secretOf('TriggerSecrets') });
  const kinds = { runs: ['run.completed', 'run.failed', 'run.canceled'], jobs: ['job.completed', 'job.failed'] };
  for (const [name, events] of Object.entries(kinds)) {
    const body = { url: `${receiver}/${name}`, events, ...secretOf('WebhookSecrets') };
    await settled(url, `/api/webhooks/${name}`, 'PUT', body);
  }
  // What another process has heard of counts in this one within five seconds.
  await pause(5000);
  const schedules: RecordedSchedule[] = [];
  for (const [index, { timeZone, minutes }] of times.entries()) {
    const asked = Date.now();
    const { id } = (await settled(url, `/api/schedules/s${index}`, 'PUT', scheduleOf(index, true))).json<{
      id: string;
    }>();
    schedules.push({ id, timeZone, minutes, asked, settled: Date.now(), until: Number.POSITIVE_INFINITY });
  }
  const { payload, ...batch } = scheduleOf(times.length, true);
  await settled(url, `/api/schedules/${batches}`, 'PUT', { ...batch, payload: payload.slice(0, 1) });
  return schedules;
};

/** None of them occurs any more; `until`: the last moment at which one had to. */
export const stopSchedules = async (url: string): Promise<number> => {
  const until = Date.now();
  for (const index of times.keys()) await settled(url, `/api/schedules/s${index}`, 'PUT', scheduleOf(index, false));
  return until;
};

/** A batch after the other, each with names of its own; one whose answer was lost may be there or not. */
const queueBatches = async (load: Load, loader: number): Promise<void> => {
  for (let count = 0; !load.isOver(); count += 1) {
    const payload = Array.from({ length: load.items }, (_, index) => `do b${loader}-${count}-${index}`);
    const answer = await sent(load.url, `/api/schedules/${batches}/trigger`, 'POST', { payload });
    if (answer?.status !== 200) {
      await pause(300);
      continue;
    }
    const { id } = answer.json<{ id: string }>();
    load.acknowledgedJobs.push(id);
    for (let status = ''; status !== 'Completed' && status !== 'Failed' && !load.isOver(); ) {
      await pause(300);
      const shown = await sent(load.url, `/api/jobs/${id}`, 'GET');
      status = shown?.status === 200 ? shown.json<{ job: { status: string } }>().job.status : '';
    }
  }
};

/** One request of a call; what it tells is added to what is known of the call. */
const request = async (load: Load, id: string): Promise<void> => {
  const body = `do ${id}`;
  const at = new Date();
  const headers = {
    'content-type': 'text/plain',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': webhook.sign(id, at, body),
  };
  load.requests += 1;
  // Now and then a sender does not wait for its answer, and does not know then whether there was one.
  const signal = load.random() < 0.1 ? AbortSignal.timeout(Math.trunc(30 * load.random())) : null;
  const sending = { method: 'POST', body, headers, signal };
  const answer = await fetch(`${load.url}/api/triggers/default/arrival`, sending)
    .then(async (response) => ({ status: response.status, body: (await response.json()) as { runId: string } }))
    .catch(() => null);
  const known = load.calls.get(id) ?? { accepted: [], isKnown: false };
  if (answer?.status === 202) load.calls.set(id, { ...known, accepted: [...known.accepted, answer.body.runId] });
  else if (answer?.status === 409) load.calls.set(id, { ...known, isKnown: true });
  else load.calls.set(id, known);
};

/** Repeats each call until somebody has it, and now and then once more. */
const callTrigger = async (load: Load, sender: number): Promise<void> => {
  for (let count = 0; !load.isOver(); count += 1) {
    const id = `t${sender}-${count}`;
    for (let turn = 0; turn < 300; turn += 1) {
      await request(load, id);
      const { accepted, isKnown } = load.calls.get(id) ?? { accepted: [], isKnown: false };
      if (accepted.length > 0 || isKnown) break;
      await pause(100);
    }
    if (load.random() < 0.2) await request(load, id);
    await pause(400 * load.random());
  }
};

export const applyLoad = async (load: Load, loaders: number): Promise<void> => {
  await Promise.all([
    ...Array.from({ length: loaders }, (_, loader) => queueBatches(load, loader)),
    ...Array.from({ length: senders }, (_, sender) => callTrigger(load, sender)),
  ]);
};
