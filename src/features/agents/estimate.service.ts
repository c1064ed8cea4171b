import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { checkRunBody } from '../../contract/run-body.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { type AgentSource, CompileError } from '../../engine/compiled-agent.ts';
import { attachmentsIn, type ChatMessage } from '../../engine/context/index.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import type { agentOperations } from './agents.operations.ts';
import { estimatePrompt } from './prompt-estimate.ts';

export type EstimateHandler = Handlers<typeof agentOperations>['estimate'];

/** The history that a run of a session would go on from; empty for one that does not exist, or is not the caller's. */
export type PromptHistory = (tenantId: string, sessionId: string) => Promise<readonly ChatMessage[]>;

export interface EstimateDeps {
  readonly source: AgentSource;
  readonly history: (context: CallContext, sessionId: string) => ReturnType<PromptHistory>;
  readonly attachments: Pick<RunAttachmentPort, 'named' | 'measure'>;
  /** `Preflight:ReserveRatio`. */
  readonly reserveRatio: number;
}

const notCompilable = (error: unknown): unknown =>
  error instanceof CompileError
    ? new AcpError('agent-not-compilable', error.message, { cause: error, details: { errors: error.findings } })
    : error;

export const estimateService =
  ({ source, history, attachments, reserveRatio }: EstimateDeps): EstimateHandler =>
  async (context, { params, body }) => {
    const { tenantId } = context;
    checkRunBody(body);
    const agent = await source.compile(context.tenantId, params.name).catch((error: unknown) => {
      throw notCompilable(error);
    });
    const sessionId = body.sessionId ?? null;
    const parameters = agent.resolveParameters(body.parameters ?? null);
    const named = await attachments.named(context, body.attachmentIds ?? [], sessionId);
    const said = sessionId === null ? [] : await history(context, sessionId);
    const files = await attachments.measure(tenantId, [...attachmentsIn(said), ...named]);
    const parts = {
      agent,
      culture: body.culture ?? null,
      parameters,
      message: body.message ?? null,
      documents: [...(body.documents ?? []), ...files.texts],
      otherAttachments: files.others,
      history: said,
    };
    return ok(await estimatePrompt(parts, reserveRatio));
  };
