import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { RunAction } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RunRow, RunScoreRow } from '../../db/tables.ts';
import type { AuditLog } from '../audit/index.ts';
import { scoreProblems } from './score-value.rules.ts';
import type { scoreOperations } from './scores.operations.ts';
import type { RunScore, RunScoreKind } from './scores.schema.ts';
import { type ScoreStore, scoreStore } from './scores.store.ts';

export interface ScoreServiceDeps {
  readonly store: ScoreStore;
  readonly audit: Pick<AuditLog, 'change'>;
  /** The run of a call, or `run-not-found`. */
  readonly findRun: (context: CallContext, runId: string, action?: RunAction) => Promise<Pick<RunRow, 'id'>>;
  readonly now: () => number;
  readonly newId: () => string;
}

// Both are part of the key, where null would equal nothing.
export const blank = '';

export const toRunScore = (row: RunScoreRow): RunScore => ({
  id: row.id,
  tenantId: row.tenant_id,
  runId: row.run_id,
  messageId: row.message_id === blank ? null : row.message_id,
  name: row.name,
  kind: row.kind as RunScoreKind,
  value: row.value,
  textValue: row.text_value,
  comment: row.comment,
  source: row.source,
  author: row.author === blank ? null : row.author,
  evaluatorVersion: row.evaluator_version,
  createdAt: isoTime(row.created_at),
});

export const scoreService = ({
  store,
  audit,
  findRun,
  now,
  newId,
}: ScoreServiceDeps): Handlers<typeof scoreOperations> => ({
  async save(context, { params, body }) {
    const run = await findRun(context, params.runId, 'Feedback');
    const errors = scoreProblems(body);
    if (errors.length > 0)
      throw new AcpError('validation-failed', 'The score does not fit its kind.', { details: { errors } });
    const { principal, tenantId } = context;
    const saved = await store.save({
      id: newId(),
      tenant_id: tenantId,
      run_id: run.id,
      message_id: body.messageId?.trim() ?? blank,
      name: (body.name ?? '').trim() === '' ? 'overall' : (body.name ?? ''),
      kind: body.kind,
      value: body.value ?? null,
      text_value: body.textValue ?? null,
      comment: body.comment ?? null,
      source: principal.apiKey === null ? 'human' : 'api',
      author: principal.actor ?? blank,
      evaluator_version: null,
      created_at: now(),
    });
    return ok(toRunScore(saved));
  },
  async list(context, { params }) {
    const run = await findRun(context, params.runId);
    return ok((await store.list(context.tenantId, run.id)).map(toRunScore));
  },
  async remove(context, { params }) {
    const run = await findRun(context, params.runId, 'Feedback');
    const { tenantId } = context;
    const id = params.scoreId.toLowerCase();
    await audit.change(context, async (stores, tell) => {
      const scores = stores(scoreStore);
      const before = await scores.get(tenantId, run.id, id);
      if (before === undefined || !(await scores.remove(tenantId, run.id, id)))
        throw new AcpError('score-not-found', `Score ${id} of run ${run.id} was not found.`);
      // Comments are a person's words and stay out of the trail.
      const { comment: _words, ...shown } = toRunScore(before);
      tell({ id, before: shown, after: null });
    });
    return noContent();
  },
});
