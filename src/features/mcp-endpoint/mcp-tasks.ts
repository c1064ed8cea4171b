import { rpcCodes } from '../../contract/json-rpc.ts';
import type { Json } from '../../contract/schema.ts';
import type { CallContext } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ActiveRun } from '../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, readSavedAt } from '../../engine/compiled-agent.ts';
import type { ExposedRuns } from '../exposure/index.ts';
import { storedWarnings } from '../runs/index.ts';
import { agentFailure, agentResult, type RunFile } from './agent-results.ts';
import type { McpTelemetry } from './mcp-telemetry.ts';
import type { McpCallContext } from './mcp-tool.ts';

export interface McpTaskDeps {
  readonly runs: ExposedRuns;
  readonly agents: Pick<AgentSource, 'compileVersion'>;
  readonly filesOf: (tenantId: string, runId: string) => Promise<readonly RunFile[]>;
  readonly settings: { readonly timeToLiveMs: number; readonly pollIntervalMs: number };
  readonly telemetry: Pick<McpTelemetry, 'taskBegan' | 'taskEnded'>;
  readonly now: () => number;
}

type TaskShape = Readonly<Record<string, Json>>;

/** The run never came to an answer of its own. */
const unexecuted: ReadonlySet<string | null> = new Set(['Infrastructure', 'CompilationFailed']);

const isOpen = ({ status }: RunRow): boolean => status === 'Queued' || status === 'Running';

/** Runs that outlive the wait of their callers, behind handles that are their ids. */
export const createMcpTasks = (deps: McpTaskDeps) => {
  const { timeToLiveMs, pollIntervalMs } = deps.settings;

  const base = ({ id, created_at, started_at, completed_at }: RunRow, status: string): TaskShape => ({
    taskId: id,
    status,
    createdAt: isoTime(created_at),
    lastUpdatedAt: isoTime(completed_at ?? started_at ?? created_at),
    ttlMs: timeToLiveMs,
    pollIntervalMs,
  });

  /** The agent as the run had it; null where it is gone, whoever has its name by now. */
  const agentOf = ({ tenant_id, agent_name, agent_version, agent_saved_at }: RunRow): Promise<CompiledAgent | null> =>
    deps.agents
      .compileVersion(tenant_id, agent_name, agent_version ?? 0, readSavedAt(agent_saved_at))
      // Its answer is told as text.
      .catch(() => null);

  const resultOf = async (row: RunRow, linkBase: string) => {
    const warnings = storedWarnings(row);
    const run = {
      runId: row.id,
      sessionId: row.session_id,
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    };
    if (row.status !== 'Completed')
      return agentFailure(run, row.error_type ?? 'unknown', row.error_message ?? 'The run did not complete.');
    const [output, agent, files] = await Promise.all([
      deps.runs.output(row),
      agentOf(row),
      deps.filesOf(row.tenant_id, row.id),
    ]);
    return agentResult(run, output, agent?.model.responseFormat ?? null, files, linkBase);
  };

  return {
    /** The handle of a run that executes, once it can be found by it; null: it has no row. */
    async handle(context: CallContext, run: ActiveRun): Promise<TaskShape | null> {
      await run.log.opened;
      const row = await deps.runs.own(context, run.id);
      if (row === undefined) return null;
      deps.telemetry.taskBegan();
      void run.done.then(deps.telemetry.taskEnded);
      return { ...base(row, 'working'), resultType: 'task' };
    },
    /** Undefined for all that is no task of this caller, or not any more. */
    async find(context: CallContext, taskId: unknown, action: 'Read' | 'Cancel'): Promise<RunRow | undefined> {
      if (typeof taskId !== 'string') return undefined;
      const row = await deps.runs.find(context, taskId, action);
      return row !== undefined && row.created_at + timeToLiveMs > deps.now() ? row : undefined;
    },
    /** The statuses of tasks that were found before, in one look. */
    heads: deps.runs.heads,
    isOpen,
    /** A task as it is, with what came of it. */
    async detailed({ base: linkBase }: Pick<McpCallContext, 'base'>, row: RunRow): Promise<TaskShape> {
      if (isOpen(row)) return base(row, 'working');
      if (row.status === 'Canceled') return base(row, 'cancelled');
      if (unexecuted.has(row.error_class)) {
        const message = row.error_message ?? 'The run could not be executed.';
        return { ...base(row, 'failed'), error: { code: rpcCodes.internalError, message } };
      }
      return { ...base(row, 'completed'), result: (await resultOf(row, linkBase)) as unknown as Json };
    },
    cancel: deps.runs.cancel,
  };
};

export type McpTasks = ReturnType<typeof createMcpTasks>;
