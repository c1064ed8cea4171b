import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { checkRunBody } from '../../contract/run-body.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { type AgentSource, CompileError } from '../../engine/compiled-agent.ts';
import type { agentOperations } from './agents.operations.ts';
import { estimatePrompt } from './prompt-estimate.ts';

export type EstimateHandler = Handlers<typeof agentOperations>['estimate'];

export interface EstimateDeps {
  readonly source: AgentSource;
  /** Texts of a session's history as a run would send them; empty for a session that the caller does not find. */
  readonly history: (context: CallContext, sessionId: string) => Promise<readonly string[]>;
  readonly reserveRatio: number;
}

const notCompilable = (error: unknown): unknown =>
  error instanceof CompileError
    ? new AcpError('agent-not-compilable', error.message, { cause: error, details: { errors: error.findings } })
    : error;

export const estimateService =
  ({ source, history, reserveRatio }: EstimateDeps): EstimateHandler =>
  async (context, { params, body }) => {
    checkRunBody(body);
    const agent = await source.compile(context.tenantId, params.name).catch((error: unknown) => {
      throw notCompilable(error);
    });
    const sessionId = body.sessionId ?? null;
    const parts = {
      agent,
      culture: body.culture ?? null,
      parameters: agent.resolveParameters(body.parameters ?? null),
      message: body.message ?? null,
      documents: body.documents ?? [],
      history: sessionId === null ? [] : await history(context, sessionId),
    };
    return ok(await estimatePrompt(parts, reserveRatio));
  };
