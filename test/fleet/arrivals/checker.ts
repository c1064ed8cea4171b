/** A schedule, and when it was in force: what occurs before `settled` may have its job, what occurs from then on has it. */
export interface RecordedSchedule {
  readonly id: string;
  readonly timeZone: string;
  /** Minutes of an hour, on the wall clock of the zone. */
  readonly minutes: readonly number[];
  readonly asked: number;
  readonly settled: number;
  readonly until: number;
}

export interface RecordedJob {
  readonly id: string;
  readonly scheduleId: string | null;
  /** When it was made. */
  readonly at: number;
  readonly status: string;
}

export interface RecordedItem {
  readonly jobId: string;
  /** Of what it does in the world outside; items of several jobs may share one. */
  readonly name: string;
  readonly status: string;
  readonly error: string | null;
}

export interface RecordedRun {
  readonly id: string;
  readonly status: string;
  /** What its failure says. */
  readonly error: string | null;
  /** A call of a trigger has started it, and no other run that it goes on with. */
  readonly ofTrigger: boolean;
}

/** What a sender was told, over all of its repeats. */
export interface RecordedCall {
  readonly accepted: readonly string[];
  /** It was told that the call had been accepted before. */
  readonly isKnown: boolean;
}

/** One request to a receiver. */
export interface RecordedRequest {
  readonly subscription: string;
  readonly id: string;
  readonly body: string;
  readonly isVerified: boolean;
}

export interface StoredDelivery {
  readonly subscription: string;
  readonly id: string;
  readonly status: string;
}

/** What senders, receivers and the world outside saw, and what the service has when all is done. */
export interface Arrivals {
  readonly schedules: readonly RecordedSchedule[];
  /** While the machine itself stood still; what was missed then is made up for by one job. */
  readonly standstills: readonly { readonly from: number; readonly to: number }[];
  readonly jobs: readonly RecordedJob[];
  /** Jobs that somebody who triggered them was told of. */
  readonly acknowledgedJobs: readonly string[];
  readonly items: readonly RecordedItem[];
  readonly runs: readonly RecordedRun[];
  /** How often each name was executed. */
  readonly executions: ReadonlyMap<string, number>;
  /** How often a call with this key came. */
  readonly callKeys: ReadonlyMap<string, number>;
  /** By their id, which is also the name of what the run does outside. */
  readonly calls: ReadonlyMap<string, RecordedCall>;
  readonly requests: readonly RecordedRequest[];
  readonly deliveries: readonly StoredDelivery[];
}

export interface Violation {
  readonly name: string;
  readonly about: string;
}

const minuteMs = 60_000;
const unknownItem = /^outcome-unknown: /;
const unknownRun = /\boutcome\b.* is unknown\b/;

const found = (name: string, about: string): Violation => ({ name, about });

/** True where the schedule occurs at this minute; told by the calendar of the platform, not by the service's own reading. */
const occurs = (): (({ timeZone, minutes }: RecordedSchedule, at: number) => boolean) => {
  const formats = new Map<string, Intl.DateTimeFormat>();
  return ({ timeZone, minutes }, at) => {
    const format = formats.get(timeZone) ?? new Intl.DateTimeFormat('en', { timeZone, minute: 'numeric' });
    formats.set(timeZone, format);
    return minutes.includes(Number(format.format(at)));
  };
};

/** Every occurrence has one job, made before the next one. */
const occurrenceViolations = ({ schedules, standstills, jobs }: Arrivals): Violation[] => {
  const occursAt = occurs();
  return schedules.flatMap((schedule) => {
    const { id, asked, settled, until } = schedule;
    const violations: Violation[] = [];
    const made = jobs.filter(({ scheduleId }) => scheduleId === id).map(({ at }) => at);
    const times: number[] = [];
    for (let at = Math.ceil(asked / minuteMs) * minuteMs; at <= until; at += minuteMs)
      if (occursAt(schedule, at)) times.push(at);
    for (const [index, at] of times.entries()) {
      const next = times[index + 1] ?? Number.POSITIVE_INFINITY;
      const count = made.filter((time) => time >= at && time < next).length;
      const about = `${id} at ${new Date(at).toISOString()}`;
      const stood = standstills.some(({ from, to }) => from < next && to > at);
      if (count > 1) violations.push(found('occurrence-twice', `${count} jobs of ${about}`));
      if (count === 0 && at > settled && !stood) violations.push(found('occurrence-lost', about));
    }
    const first = times[0] ?? Number.POSITIVE_INFINITY;
    const early = made.filter((time) => time < first).length;
    if (early > 0) violations.push(found('occurrence-invented', `${early} jobs of ${id} before it occurred`));
    return violations;
  });
};

/** A job fails where all of its items have, and items fail here by an unknown outcome alone. Any other job completes. */
const endOf = (items: readonly RecordedItem[]): string =>
  items.length > 0 && items.every(({ status, error }) => status === 'Failed' && unknownItem.test(error ?? ''))
    ? 'Failed'
    : 'Completed';

const jobViolations = ({ jobs, items, acknowledgedJobs }: Arrivals): Violation[] => {
  const known = new Set(jobs.map(({ id }) => id));
  const byJob = Map.groupBy(items, ({ jobId }) => jobId);
  return [
    ...acknowledgedJobs.filter((id) => !known.has(id)).map((id) => found('job-lost', id)),
    ...jobs
      .filter(({ id, status }) => status !== endOf(byJob.get(id) ?? []))
      .map(({ id, status }) => found('job-not-completed', `${id} is ${status}`)),
  ];
};

/** What was done is done once; only whoever says that it does not know may have done it or not. */
const itemViolations = ({ items, executions, callKeys, calls }: Arrivals): Violation[] => {
  const violations: Violation[] = [];
  const byName = new Map<string, { completed: number; unknown: number }>();
  for (const { jobId, name, status, error } of items) {
    const counts = byName.get(name) ?? { completed: 0, unknown: 0 };
    byName.set(name, counts);
    if (status === 'Completed') counts.completed += 1;
    else if (status === 'Failed' && unknownItem.test(error ?? '')) counts.unknown += 1;
    else violations.push(found('item-lost', `${name} of job ${jobId} is ${status}: ${error}`));
  }
  for (const [name, { completed, unknown }] of byName) {
    const count = executions.get(name) ?? 0;
    const about = `${name}: ${count} executions, ${completed} completed, ${unknown} unknown`;
    if (count > completed + unknown) violations.push(found('item-twice', about));
    if (count < completed) violations.push(found('item-not-executed', about));
  }
  for (const name of executions.keys())
    if (!byName.has(name) && !calls.has(name)) violations.push(found('execution-of-nothing', name));
  for (const [key, count] of callKeys)
    if (count > 1) violations.push(found('call-repeated', `${count} calls with the key ${key}`));
  return violations;
};

const triggerViolations = ({ calls, runs, executions }: Arrivals): Violation[] => {
  const violations: Violation[] = [];
  const started = new Map(runs.filter(({ ofTrigger }) => ofTrigger).map((run) => [run.id, run]));
  const told = new Set<string>();
  let unnamed = 0;
  for (const [id, { accepted, isKnown }] of calls) {
    for (const runId of accepted) told.add(runId);
    if (accepted.length > 1) violations.push(found('trigger-twice', `${id} was accepted as ${accepted.join(' and ')}`));
    if (accepted.length === 0 && isKnown) unnamed += 1;
    if (accepted.length === 0 && !isKnown) violations.push(found('trigger-unanswered', id));
    const lost = accepted.filter((runId) => !started.has(runId));
    if (lost.length > 0) violations.push(found('trigger-lost', `${id} was accepted as ${lost.join(' and ')}`));
    const count = executions.get(id) ?? 0;
    if (count > 1) violations.push(found('trigger-twice', `${id} was executed ${count} times`));
    const isDone = accepted.some((runId) => started.get(runId)?.status === 'Completed');
    if (count === 0 && isDone) violations.push(found('trigger-not-executed', id));
  }
  // Their senders heard only that somebody had accepted them.
  const others = [...started.keys()].filter((id) => !told.has(id)).length;
  const counted = `${others} runs of ${unnamed} calls whose answer was lost`;
  if (others > unnamed) violations.push(found('trigger-twice', counted));
  if (others < unnamed) violations.push(found('trigger-lost', counted));
  return violations;
};

const runViolations = ({ runs }: Arrivals): Violation[] =>
  runs.flatMap(({ id, status, error, ofTrigger }) => {
    if (status !== 'Completed' && status !== 'Failed') return [found('run-unfinished', `${id} is ${status}`)];
    // An item may have had several runs; the item tells how they ended.
    const isLost = ofTrigger && status === 'Failed' && !unknownRun.test(error ?? '');
    return isLost ? [found('trigger-lost', `run ${id} has failed: ${error}`)] : [];
  });

const eventOf = ({ subscription, body }: RecordedRequest): string => {
  const { type, data } = JSON.parse(body) as { type: string; data: { runId?: string; jobId?: string } };
  return `${subscription} ${type} ${data.runId ?? data.jobId}`;
};

/** Every end is told under one id, and no other; the same id says the same. */
const deliveryViolations = ({ runs, jobs, requests, deliveries }: Arrivals): Violation[] => {
  const violations: Violation[] = [];
  const expected = new Set([
    ...runs.map(({ id, status }) => `runs run.${status.toLowerCase()} ${id}`),
    ...jobs.map(({ id, status }) => `jobs job.${status.toLowerCase()} ${id}`),
  ]);
  const bodies = new Map<string, string>();
  const ids = new Map<string, Set<string>>();
  for (const request of requests) {
    const { id, body, isVerified } = request;
    if (!isVerified) violations.push(found('signature-invalid', id));
    const before = bodies.get(id);
    if (before !== undefined && before !== body) violations.push(found('repeat-differs', id));
    bodies.set(id, body);
    const event = eventOf(request);
    ids.set(event, (ids.get(event) ?? new Set()).add(id));
  }
  for (const event of expected) if (!ids.has(event)) violations.push(found('delivery-lost', event));
  for (const [event, { size }] of ids) {
    if (!expected.has(event)) violations.push(found('delivery-untrue', event));
    if (size > 1) violations.push(found('repeat-under-other-id', `${event} came under ${size} ids`));
  }
  const stored = new Set(deliveries.map(({ id }) => id));
  for (const id of bodies.keys()) if (!stored.has(id)) violations.push(found('delivery-unknown', id));
  for (const { id, status } of deliveries) {
    if (status !== 'Delivered') violations.push(found('delivery-not-delivered', `${id} is ${status}`));
    if (!bodies.has(id)) violations.push(found('delivery-lost', `${id} is ${status}, and never came`));
  }
  return violations;
};

/** What does not agree, each by its name; empty: nothing was lost, and nothing was done twice. */
export const violationsOf = (arrivals: Arrivals): readonly Violation[] => [
  ...occurrenceViolations(arrivals),
  ...jobViolations(arrivals),
  ...itemViolations(arrivals),
  ...triggerViolations(arrivals),
  ...runViolations(arrivals),
  ...deliveryViolations(arrivals),
];
