import { isRecord } from '../../contract/record.ts';
import type { Artifact, Part, StreamResponse, Task, TaskMessage, TaskState, TaskStatus } from './a2a.schema.ts';
import { isFinal } from './task-state.rules.ts';

/* Answers in the form of version 0.3: every object has a kind, and nothing is wrapped. */

const state = (of: TaskState): string => of.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

const part = ({ text, raw, url, data, filename, mediaType, metadata }: Part): object => {
  const more = metadata === undefined ? {} : { metadata };
  if (text !== undefined) return { kind: 'text', text, ...more };
  if (data === undefined) {
    const named = {
      ...(mediaType === undefined ? {} : { mimeType: mediaType }),
      ...(filename === undefined ? {} : { name: filename }),
    };
    return { kind: 'file', file: raw === undefined ? { uri: url, ...named } : { bytes: raw, ...named }, ...more };
  }
  if (isRecord(data) && !Array.isArray(data)) return { kind: 'data', data, ...more };
  // Only an object can stand there; clients that know both versions unwrap it by this mark.
  return { kind: 'data', data: { value: data }, metadata: { ...metadata, data_part_compat: true } };
};

const message = ({ parts, role, ...rest }: TaskMessage): object => ({
  kind: 'message',
  ...rest,
  role: role === 'ROLE_USER' ? 'user' : 'agent',
  parts: parts.map(part),
});

const status = (of: TaskStatus): object => ({
  state: state(of.state),
  ...(of.message === undefined ? {} : { message: message(of.message) }),
  timestamp: of.timestamp,
});

const artifact = ({ parts, ...rest }: Artifact): object => ({ ...rest, parts: parts.map(part) });

export const legacyTask = ({ status: now, artifacts, history, ...rest }: Task): object => ({
  kind: 'task',
  ...rest,
  status: status(now),
  ...(artifacts === undefined ? {} : { artifacts: artifacts.map(artifact) }),
  ...(history === undefined ? {} : { history: history.map(message) }),
});

export const legacyEvent = (event: StreamResponse): object => {
  if ('task' in event) return legacyTask(event.task);
  if ('statusUpdate' in event) {
    const { status: now, ...rest } = event.statusUpdate;
    return { kind: 'status-update', ...rest, status: status(now), final: isFinal(now.state) };
  }
  const { artifact: of, ...rest } = event.artifactUpdate;
  return { kind: 'artifact-update', ...rest, artifact: artifact(of) };
};
