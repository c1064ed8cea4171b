import type { Frame } from '../../contract/operation.ts';
import type { Json } from '../../contract/schema.ts';
import type { Artifact, Part, StreamResponse } from './a2a.schema.ts';
import { type RunState, type TaskIds, taskStatus } from './task-state.rules.ts';

/** An update, and where it stands: after which event of the run, and which of several that one event makes. */
export interface PlacedUpdate {
  readonly position: string;
  readonly event: Exclude<StreamResponse, { task: unknown }>;
}

/** What is read of an event of a run. */
interface EventData {
  readonly timestamp: string;
  readonly messageId?: string;
  readonly text?: string | null;
  readonly output?: string | null;
  readonly structuredOutput?: Json;
  readonly error?: { readonly class: string; readonly type: string };
  readonly usage?: object | null;
}

const outputArtifact = (parts: readonly Part[]): Artifact => ({ artifactId: 'output', name: 'output', parts });

/** The answer of an agent: data where its format is JSON. */
const outputPart = (output: string, structured: Json | undefined): Part =>
  structured === undefined || structured === null
    ? { text: output }
    : { data: structured, mediaType: 'application/json' };

const ends: Readonly<Record<string, string>> = {
  'run.completed': 'Completed',
  'run.failed': 'Failed',
  'run.canceled': 'Canceled',
  'run.awaiting-approval': 'AwaitingApproval',
  'run.awaiting-input': 'AwaitingInput',
};

/**
 * A task as its run's log tells it, event after event: the same events always make the same updates, whoever reads them and
 * when, which is what lets a stream go on where another one was cut.
 */
export class TaskUpdates {
  readonly #ids: TaskIds;
  readonly #answersJson: boolean;
  /** Text of the answer that readers have by now. */
  #text = '';
  #messageId: string | null = null;
  #output: Part | null = null;
  #run: RunState = { status: 'Queued', errorClass: null, errorType: null, hasUsage: false };
  #changedAt: number;
  #next = 0;

  constructor(ids: TaskIds, answersJson: boolean, createdAt: number) {
    this.#ids = ids;
    this.#answersJson = answersJson;
    this.#changedAt = createdAt;
  }

  /** Sequence of the event after the last one that was read. */
  get next(): number {
    return this.#next;
  }

  get status() {
    return taskStatus(this.#ids, this.#run, this.#changedAt);
  }

  /** What there is of the answer; null: nothing. */
  get output(): Artifact | null {
    if (this.#output !== null) return outputArtifact([this.#output]);
    return this.#text === '' ? null : outputArtifact([{ text: this.#text }]);
  }

  get isOver(): boolean {
    return this.#run.status !== 'Queued' && this.#run.status !== 'Running';
  }

  /** `files`: what the run has made by its end, which is told before its last status. */
  read(frame: Frame, files: readonly Artifact[] = []): readonly PlacedUpdate[] {
    // Only what tells a streaming caller of a failure has no place in the log.
    if (frame.id === undefined || frame.id < this.#next) return [];
    this.#next = frame.id + 1;
    const events = this.#eventsOf(frame, files);
    const at = frame.id;
    return events.map((event, index) => ({
      event,
      position: index === events.length - 1 ? `${at}` : `${at - 1}.${index + 1}`,
    }));
  }

  #eventsOf(frame: Frame, files: readonly Artifact[]): readonly PlacedUpdate['event'][] {
    const { event: type } = frame;
    if (type === 'message.delta') return this.#delta(JSON.parse(frame.data) as EventData);
    if (type !== 'run.started' && ends[type] === undefined) return [];
    const data = JSON.parse(frame.data) as EventData;
    this.#changedAt = Date.parse(data.timestamp);
    if (type === 'run.started') {
      if (this.#run.status === 'Running') return [];
      this.#run = { ...this.#run, status: 'Running' };
      return [this.#statusUpdate()];
    }
    this.#run = {
      status: ends[type] ?? '',
      errorClass: data.error?.class ?? null,
      errorType: data.error?.type ?? null,
      hasUsage: (data.usage ?? null) !== null,
    };
    const answer = type === 'run.completed' ? this.#answer(data) : [];
    const made = files.map((artifact) => this.#artifactUpdate(artifact, false, true));
    return [...answer, ...made, this.#statusUpdate()];
  }

  #delta({ messageId = '', text }: EventData): readonly PlacedUpdate['event'][] {
    if (this.#answersJson || text === undefined || text === null || text === '') return [];
    // What an agent says before it calls a tool is not its answer: the next message takes the place of it.
    const isFirst = messageId !== this.#messageId;
    this.#messageId = messageId;
    this.#text = isFirst ? text : this.#text + text;
    return [this.#artifactUpdate(outputArtifact([{ text }]), !isFirst, false)];
  }

  /** What readers lack of the answer: all of it where they have another text, as of a message that was taken back. */
  #answer({ output, structuredOutput }: EventData): readonly PlacedUpdate['event'][] {
    const whole = output ?? '';
    const part = outputPart(whole, structuredOutput);
    this.#output = part;
    const goesOn = part.text !== undefined && this.#text !== '' && whole.startsWith(this.#text);
    const rest: Part = goesOn ? { text: whole.slice(this.#text.length) } : part;
    return [this.#artifactUpdate(outputArtifact([rest]), goesOn, true)];
  }

  #artifactUpdate(artifact: Artifact, append: boolean, lastChunk: boolean): PlacedUpdate['event'] {
    return { artifactUpdate: { ...this.#ids, artifact, append, lastChunk } };
  }

  #statusUpdate(): PlacedUpdate['event'] {
    return { statusUpdate: { ...this.#ids, status: this.status } };
  }
}

/** Whether what stands at `position` comes after what a reader says that it has. */
export const isAfter = (position: string, seen: string): boolean => {
  const [event = 0, nth = 0] = position.split('.').map(Number);
  const [seenEvent = 0, seenNth = 0] = seen.split('.').map(Number);
  return event > seenEvent || (event === seenEvent && nth > seenNth);
};

export const isPosition = (text: string): boolean => /^(?:-1|\d{1,15})(?:\.\d{1,6})?$/.test(text);
