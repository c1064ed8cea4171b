import { decodePack } from '../../engine/record/index.ts';
import { readableRow } from '../retention/index.ts';
import { chunks } from './chunks.ts';
import { type SubjectTarget, subjectTargets } from './data-subjects.schema.ts';
import { type HangingTarget, hangsOnRuns, type SubjectScope, type SubjectStore } from './subject-rows.store.ts';

export interface SubjectExportDeps {
  readonly store: Pick<SubjectStore, 'ofRuns' | 'files' | 'opened' | 'conversation' | 'waitingSpans'>;
  readonly messagesOf: (tenantId: string, sessionId: string) => Promise<readonly unknown[]>;
}

type Rows = AsyncGenerator<object, void>;

interface PackedEvents {
  readonly run_id: string;
  readonly first_sequence: number;
  readonly events: string;
}

/** A stored row as the rows that it stands for. */
const unpacked = (target: HangingTarget, row: object): object[] => {
  if (target === 'runEvents') {
    const { run_id: runId, first_sequence: first, events } = row as PackedEvents;
    return decodePack(runId, first, events, 0).map(({ data }) => JSON.parse(data) as object);
  }
  if (target === 'spans') return JSON.parse((row as { readonly spans: string }).spans) as object[];
  return [readableRow(row)];
};

/** The bytes of the document, list by list: nothing of it is held but what is being read. */
export const writeSubject = async function* (
  { store, messagesOf }: SubjectExportDeps,
  scope: SubjectScope,
  head: { readonly subjectId: string; readonly exportedAt: string },
): AsyncGenerator<Uint8Array, void> {
  const ofRuns = async function* (target: HangingTarget): Rows {
    for (const ids of chunks(scope.runs.map(({ id }) => id)))
      for (const row of await store.ofRuns(scope.tenantId, target, ids)) yield* unpacked(target, row);
  };
  const spans = async function* (): Rows {
    yield* ofRuns('spans');
    for (const keys of chunks(scope.waitingSpans)) yield* await store.waitingSpans(scope.tenantId, keys);
  };
  const sessions = async function* (): Rows {
    for (const row of scope.sessions)
      yield {
        ...readableRow(store.opened(row)),
        messages: await messagesOf(scope.tenantId, row.id),
      };
  };
  const files = async function* (): Rows {
    for (const owners of chunks(scope.fileOwners))
      for (const row of await store.files(scope.tenantId, owners)) yield readableRow(row);
  };
  const stored = async function* (rows: readonly object[]): Rows {
    for (const row of rows) yield readableRow(row);
  };
  const rowsOf = (target: SubjectTarget): Rows => {
    if (target === 'sessions') return sessions();
    if (target === 'conversations') return stored(scope.conversations.map(store.conversation));
    if (target === 'runs') return stored(scope.runs);
    if (target === 'attachments') return stored(scope.attachments);
    if (target === 'agentFiles') return files();
    if (target === 'spans') return spans();
    return hangsOnRuns(target) ? ofRuns(target) : stored([]);
  };

  yield Buffer.from(`{"subjectId":${JSON.stringify(head.subjectId)},"exportedAt":"${head.exportedAt}"`);
  for (const target of subjectTargets) {
    yield Buffer.from(`,\n"${target}":[`);
    let separator = '';
    for await (const row of rowsOf(target)) {
      yield Buffer.from(`${separator}\n${JSON.stringify(row)}`);
      separator = ',';
    }
    yield Buffer.from(']');
  }
  yield Buffer.from('}\n');
};
