import assert from 'node:assert/strict';
import { type Answer, type Api, type Body, type CallOptions, type Frame, parseFrames } from './api.ts';

export interface OpenRun {
  readonly runId: string;
  readonly headers: Headers;
  /** All frames, when the run has ended. */
  rest(): Promise<Frame[]>;
}

/** Starts a streamed run and returns when its headers are there, which is when the run is in progress. */
export const open = async (
  api: Api,
  agent: string,
  body: Record<string, unknown>,
  options?: CallOptions & { query?: string; signal?: AbortSignal },
): Promise<OpenRun> => {
  const response = await api.fetch('POST', `/api/agents/${agent}/run${options?.query ?? ''}`, body, options);
  if (response.status !== 200) assert.fail(await response.text());
  const runId = response.headers.get('x-run-id') ?? '';
  return { runId, headers: response.headers, rest: async () => parseFrames(await response.text()) };
};

export const respondAsync = { headers: { prefer: 'respond-async' } };

/** Queues a run and returns its id. */
export const enqueue = async (api: Api, agent: string, body: Record<string, unknown>): Promise<string> => {
  const answer = await api.post(`/api/agents/${agent}/run`, body, respondAsync);
  assert.equal(answer.status, 202, answer.text);
  return answer.body.runId;
};

export const getRun = async (api: Api, runId: string): Promise<Body> => {
  const answer = await api.get(`/api/runs/${runId}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

/** The whole log; waits for the end of a run in progress. */
export const logOf = (api: Api, runId: string): Promise<Frame[]> => api.frames('GET', `/api/runs/${runId}/events`);

/** The record of a run after its end. */
export const ended = async (api: Api, runId: string): Promise<Body> => {
  await logOf(api, runId);
  return getRun(api, runId);
};

export const cancel = (api: Api, runId: string): Promise<Answer> => api.post(`/api/runs/${runId}/cancel`);

export const namesOf = (frames: readonly Frame[]): string[] => frames.map(({ event }) => event);

/** The data of the only frame with this name. */
export const only = (frames: readonly Frame[], event: string): Body => {
  const found = frames.filter((frame) => frame.event === event);
  assert.equal(found.length, 1, `${event} among ${namesOf(frames).join(', ')}`);
  return found[0]?.data;
};

export const last = (frames: readonly Frame[]): Frame => frames.at(-1) ?? assert.fail('There is no frame.');

/** A log is one: sequences without gap from 0, one terminal event, which is last, and each frame named as its data. */
export const assertWhole = (frames: readonly Frame[]): void => {
  const logged = frames.filter(({ id }) => id !== null);
  assert.deepEqual(
    logged.map(({ id }) => id),
    logged.map((_, index) => index),
  );
  for (const { id, event, data } of logged) assert.deepEqual([data.sequence, data.type], [id, event]);
  const terminal = logged.filter(({ event }) =>
    /^run\.(completed|failed|canceled|awaiting-approval|awaiting-input)$/.test(event),
  );
  assert.deepEqual(terminal, [last(frames)]);
};

/** Ids of a list, in its order. */
export const idsOf = (answer: Answer): string[] => {
  assert.equal(answer.status, 200, answer.text);
  return answer.body.map(({ id }: { id: string }) => id);
};
